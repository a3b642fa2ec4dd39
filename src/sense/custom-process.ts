/** Starts, asks and ends the process of a policy's custom functions; one that hangs is killed, and the next look begins another. Stage: sense. */
import { type ChildProcess, fork } from 'node:child_process';
import { builtFile } from '../policy/built-file.js';
import type { CustomAsk, CustomReply, CustomResult } from './custom-child.js';
import { waitAtMost } from './deadline.js';

export type Results = Readonly<Record<string, CustomResult>>;

export interface CustomProcess {
  /** Null while it still starts after `patienceMs`. Rejects when it ended, or could not load the file. */
  ask(wanted: CustomAsk['wanted'], patienceMs: number): Promise<Results | null>;
  close(): void;
}

/** A busy machine may need this long to start a process and read TypeScript. */
const START_MS = 30_000;
/** It answers by its functions' deadlines by itself; one that is silent for so long is blocked. */
const SILENT_MS = 3_000;

interface Waiting {
  resolve: (results: Results) => void;
  reject: (error: Error) => void;
}

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It never had a group, or nobody of it is left.
    child.kill('SIGKILL');
  }
}

/** Its functions have the same channel: what they send is not of ours. */
function replyOf(message: unknown): CustomReply | null {
  const { kind, results } = Object(message) as { kind?: unknown; results?: unknown };
  if (kind === 'ready' || kind === 'fault') return message as CustomReply;
  return kind === 'results' && Object(results) === results ? (message as CustomReply) : null;
}

export function createCustomProcess(
  file: string,
  code: string,
  env: NodeJS.ProcessEnv,
): CustomProcess {
  const waiting = new Map<number, Waiting>();
  let nextId = 1;
  let ready = false;
  let ended: Error | null = null;
  let gone = false;
  let begin: () => void = () => {};
  /** Settles when it is ready or has ended. */
  const started = new Promise<void>((ok) => {
    begin = ok;
  });

  const child: ChildProcess = fork(builtFile(import.meta.url, 'custom-child.js'), [file, code], {
    env,
    execArgv: ['--max-old-space-size=128'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // JSON has no NaN, and a function may give it.
    serialization: 'advanced',
    // A group of its own: what its functions start ends with it.
    detached: true,
  });
  child.unref();
  child.channel?.unref();
  let silence = endAfter(START_MS, `its file was not loaded within ${START_MS / 1000} s`);

  function endAfter(ms: number, why: string) {
    const timer = setTimeout(() => end(new Error(why)), ms);
    timer.unref();
    return timer;
  }

  function end(why: Error): void {
    clearTimeout(silence);
    ended ??= why;
    begin();
    // Once it is gone, its number may be another's.
    if (!gone) killGroup(child);
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  }

  child.on('message', (message) => {
    const reply = replyOf(message);
    if (reply === null) return;
    clearTimeout(silence);
    if (reply.kind === 'ready') {
      ready = true;
      begin();
    } else if (reply.kind === 'fault')
      end(new Error(`its file cannot be loaded: ${reply.message}`));
    else {
      waiting.get(reply.id)?.resolve(reply.results);
      waiting.delete(reply.id);
    }
  });
  child.once('error', (error) => end(new Error(`its process failed: ${error.message}`)));
  child.once('exit', (exitCode, signal) => {
    end(new Error(`its process ended (${signal ?? `exit code ${exitCode}`})`));
    gone = true;
  });

  return {
    async ask(wanted, patienceMs) {
      if (!ready) await waitAtMost(patienceMs, started);
      if (ended !== null) throw ended;
      if (!ready) return null;
      const id = nextId++;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        clearTimeout(silence);
        silence = endAfter(SILENT_MS, `it blocked its process for ${SILENT_MS / 1000} s`);
        child.send({ id, wanted } satisfies CustomAsk, (error) => error && end(error));
      });
    },
    close: () => end(new Error('it was closed')),
  };
}
