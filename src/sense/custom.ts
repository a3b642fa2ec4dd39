/** Numbers that functions in a policy file give; they run in a process of the file's own and never leave it. Stage: sense. */
import { resolve } from 'node:path';
import type { Signal } from '../policy/schema.js';
import { type CustomProcess, createCustomProcess, type Results } from './custom-process.js';
import { guarded, isLate, textOf } from './guarded.js';
import type { Missing } from './readings.js';
import { seenNumber } from './seen.js';
import { keyOf, lookOf, missing, type Seen, type Source, type SourceDeps } from './source.js';

type CustomSignal = Extract<Signal, { source: 'custom' }>;

/** Of one function, within the process; the look as a whole may take a little longer. */
const DEADLINE_MS = 800;
const LOOK_MS = 1_000;
/** A look waits so long for a process that starts. */
const STARTING_MS = 700;

interface Asked {
  /** Null: its process starts. */
  results: Results | null;
  monotonicMs: number;
}

/** All functions of one file share one process. */
export function customKey({ code, function: name }: CustomSignal): string {
  return keyOf('custom', code ?? name);
}

export function createCustomSource(signal: CustomSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { code = '' } = signal;
  let running: CustomProcess | null = null;
  let wanted: readonly CustomSignal[] = [];

  const guard = guarded<Asked>({
    name: 'a custom function',
    source: 'custom',
    deadlineMs: LOOK_MS,
    log,
    async ask() {
      const file = deps.policyFile?.(code) ?? null;
      if (running === null && file === null) {
        throw new Error(
          'its function is not here: this daemon has no policy file with it, or has another version. Give it the file.',
        );
      }
      running ??= createCustomProcess(resolve(file!), code, env);
      const monotonicMs = clock.monotonicMs();
      const asks = wanted.map(({ function: name = '', deadlineMs = DEADLINE_MS }) => {
        return { name, deadlineMs: Math.min(deadlineMs, LOOK_MS - 50) };
      });
      try {
        return { results: await running.ask(asks, STARTING_MS), monotonicMs };
      } catch (error) {
        running = null;
        throw error;
      }
    },
    missingFor: (error) => missing(isLate(error) ? 'timeout' : 'error', textOf(error)),
  });

  return {
    async look(signals) {
      wanted = signals as readonly CustomSignal[];
      const asked = await guard.ask();
      return lookOf(signals, (each) =>
        'kind' in asked ? asked : seenOf(each as CustomSignal, asked),
      );
    },
    async close() {
      guard.close();
      running?.close();
      running = null;
    },
  };
}

function seenOf(signal: CustomSignal, { results, monotonicMs }: Asked): Seen | Missing {
  if (results === null) return missing('not_started', 'its process is starting');
  const result = results[signal.function ?? ''];
  const { unit = 'count', deadlineMs = DEADLINE_MS } = signal;
  switch (result?.kind) {
    case 'number':
      return seenNumber(result.value, unit, monotonicMs);
    case 'late':
      return missing('timeout', `the function did not answer within ${deadlineMs} ms`);
    case 'error':
      return missing('error', `the function failed: ${result.message}`);
    default:
      return missing('error', 'the function was not asked');
  }
}
