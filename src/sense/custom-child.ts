/** The process in which the custom functions of one policy file run: asked by message, at most one call of each at a time. Stage: sense. */
import { Worker } from 'node:worker_threads';
import { codeOf } from '../policy/code.js';
import { type CustomFunction, customFunctions } from '../policy/custom-function.js';
import { importPolicyFile } from '../policy/import-file.js';

export interface CustomAsk {
  id: number;
  /** Functions, each with the time it has. */
  wanted: { name: string; deadlineMs: number }[];
}

export type CustomResult =
  | { kind: 'number'; value: number }
  | { kind: 'late' }
  | { kind: 'error'; message: string };

export type CustomReply =
  | { kind: 'ready' }
  | { kind: 'fault'; message: string }
  | { kind: 'results'; id: number; results: Record<string, CustomResult> };

/** 512 MB. */
const MOST_MEMORY = 512e6;
/** A call that has not ended for so long never will: the process is begun anew. */
const STUCK_MS = 30_000;
const LONGEST = 200;

const [, , file, code] = process.argv;
const under = new Map<string, number>();
let functions = new Map<string, CustomFunction>();

function reply(message: CustomReply): void {
  process.send?.(message);
}

async function call(name: string, deadlineMs: number): Promise<CustomResult> {
  const ask = functions.get(name);
  if (ask === undefined) return { kind: 'error', message: 'the file has no such function' };
  const sinceMs = under.get(name);
  if (sinceMs !== undefined) {
    if (performance.now() - sinceMs > STUCK_MS) process.exit(1);
    return { kind: 'late' };
  }
  under.set(name, performance.now());
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<CustomResult>((ok) => {
    timer = setTimeout(() => {
      ok({ kind: 'late' });
      over.abort();
    }, deadlineMs);
  });
  const answer = (async () => ask({ signal: over.signal, env: process.env }))()
    .then(resultOf, (error: unknown): CustomResult => ({ kind: 'error', message: said(error) }))
    .finally(() => under.delete(name));
  const result = await Promise.race([answer, late]);
  clearTimeout(timer);
  return result;
}

function resultOf(value: unknown): CustomResult {
  if (typeof value === 'number') return { kind: 'number', value };
  const what = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  return { kind: 'error', message: `it gave ${what}, not a number` };
}

function said(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return text.slice(0, LONGEST);
  } catch {
    return 'something that cannot be shown';
  }
}

async function answer({ id, wanted }: CustomAsk): Promise<void> {
  const found = await Promise.all(
    wanted.map(async ({ name, deadlineMs }) => [name, await call(name, deadlineMs)] as const),
  );
  reply({ kind: 'results', id, results: Object.fromEntries(found) });
}

if (file !== undefined && process.send) {
  // Its parent may be gone while a function loops, and buffers are outside the limit of the heap: only another
  // thread sees either.
  new Worker(
    `const end = () => process.kill(-process.pid, 'SIGKILL');
    setInterval(() => {
      if (process.ppid !== ${process.ppid} || process.memoryUsage.rss() > ${MOST_MEMORY}) end();
    }, 200);`,
    { eval: true },
  ).unref();
  process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
  try {
    const before = codeOf(file);
    const module = await importPolicyFile(file);
    functions = customFunctions(module.default);
    if (before !== code || codeOf(file) !== code) {
      throw new Error('it is not the text any more that was adopted');
    }
    process.on('message', (message: CustomAsk) => void answer(message));
    reply({ kind: 'ready' });
  } catch (error) {
    process.send({ kind: 'fault', message: said(error) } satisfies CustomReply, () =>
      process.exit(1),
    );
  }
}
