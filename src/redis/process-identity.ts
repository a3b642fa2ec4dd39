/** Is a process still the one that was meant: its pid with its start time, since pids are used again. Stage: embedded Redis. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ProcessIdentity {
  pid: number;
  /** Opaque: compare it only with one made on the same machine. */
  start: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, start: startOf(process.pid) ?? 'unknown' };
}

/** The identity of a process that runs now; null when there is none with this pid. */
export function identityOf(pid: number): ProcessIdentity | null {
  const start = startOf(pid);
  return start === null ? null : { pid, start };
}

/** False for a dead process, a zombie, and another process that got the same pid. */
export function isAlive({ pid, start }: ProcessIdentity): boolean {
  return Number.isInteger(pid) && pid > 0 && startOf(pid) === start;
}

function startOf(pid: number): string | null {
  if (process.platform === 'linux') return startOnLinux(pid);
  try {
    const text = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
    return text.trim() || null;
  } catch {
    return null;
  }
}

function startOnLinux(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name stands in parentheses and may hold anything; the fields begin after the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startTicks] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X' || startTicks === undefined) return null;
    return `${bootId()}:${startTicks}`;
  } catch {
    return null;
  }
}

/** Start times count from the boot: after a restart the same ticks may mean another process. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
