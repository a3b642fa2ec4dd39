/** Evaluates one policy file in a fresh process with a deadline, so that no file can hang or end its reader. Stage: policy. */
import { fork } from 'node:child_process';
import { builtFile } from './built-file.js';
import type { ChildReply } from './load-child.js';

/** A busy machine may need this long to start a process; the file's own deadline begins after that. */
const START_MS = 30_000;
/** What has given its policy has this long to end. */
const LEAVE_MS = 1000;

/**
 * A process and not a worker thread: a thread inside a blocking system call cannot be ended, and would hold
 * up the exit of the daemon; a process always can.
 */
export function evaluateFile(file: string, deadlineMs: number): Promise<ChildReply> {
  return new Promise((resolve) => {
    const child = fork(builtFile(import.meta.url, 'load-child.js'), [file, String(deadlineMs)], {
      execArgv: ['--max-old-space-size=256'],
      // What the file prints must not mix with a command's result.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    });
    let reply: ChildReply | undefined;
    let late = false;
    const endAfter = (ms: number) =>
      setTimeout(() => {
        late = true;
        child.kill('SIGKILL');
      }, ms);
    let deadline = endAfter(START_MS);
    let started = false;
    // What arrives may come from the file itself: nothing of its shape is taken for granted.
    child.on('message', (message) => {
      const more = message === 'started' ? !started : reply === undefined && isReply(message);
      if (!more) return;
      clearTimeout(deadline);
      deadline = endAfter(started ? LEAVE_MS : deadlineMs);
      if (isReply(message)) reply = message;
      started = true;
    });
    const end = (why: string) => {
      clearTimeout(deadline);
      const hint = 'Code that loops, waits or ends the process has no place in a policy.';
      resolve(
        reply ?? {
          kind: 'faults',
          faults: [{ field: '', message: `${why} ${hint}` }],
        },
      );
    };
    child.once('error', (error) => end(`could not be evaluated: ${error.message}.`));
    child.once('exit', (code, signal) => {
      end(
        late && reply === undefined
          ? `did not return within ${deadlineMs} ms.`
          : `ended its process (${signal ?? `exit code ${code}`}) before it gave a policy.`,
      );
    });
  });
}

function isReply(message: unknown): message is ChildReply {
  const { kind, faults } = (message ?? {}) as { kind?: unknown; faults?: unknown };
  return kind === 'value' || (kind === 'faults' && Array.isArray(faults) && faults.every(isFault));
}

function isFault(fault: unknown): boolean {
  const { field, message, line } = (fault ?? {}) as Record<string, unknown>;
  return (
    typeof field === 'string' &&
    typeof message === 'string' &&
    (line === undefined || typeof line === 'number')
  );
}
