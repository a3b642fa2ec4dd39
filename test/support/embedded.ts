/** Starts and ends users of an embedded Redis as processes, and counts the servers of a folder. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('embedded-user.mjs', import.meta.url));

export interface User {
  pid: number;
  url?: string;
  joined?: boolean;
  code?: string;
  message?: string;
  /** Waits until it is gone. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

export const newFolder = () => mkdtempSync(join(tmpdir(), 'flyball-embedded-'));

/** `within` stands before the command: `unshare …`, to give it a disk of its own. */
export async function startUser(
  dataDir: string,
  options: { deadlineMs?: number; within?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<User> {
  const { deadlineMs = 20_000, within = [], env = process.env } = options;
  const command = [...within, process.execPath, SCRIPT, dataDir, String(deadlineMs)];
  const child = spawn(command[0]!, command.slice(1), { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const said = await firstLine(child);
  return {
    ...JSON.parse(said),
    pid: child.pid!,
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((ok) => child.once('exit', ok));
      child.kill(signal);
      await gone;
    },
  };
}

/** Pids of the redis-server processes whose title names this folder or socket. */
export function serversOf(path: string): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,args=', '-ww'], { encoding: 'utf8' }).split('\n');
  return lines
    .filter((line) => /redis-server|valkey-server/.test(line) && line.includes(path))
    .map((line) => Number.parseInt(line, 10));
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((ok, no) => {
    let text = '';
    child.stdout!.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) ok(text.slice(0, text.indexOf('\n')));
    });
    child.once('error', no);
    child.once('exit', (code) => no(new Error(`ended with ${code} before it said anything`)));
  });
}
