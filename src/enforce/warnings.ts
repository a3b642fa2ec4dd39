/** Tells an operator what is wrong, at most once a minute for each code. Stage: enforce. */
import type { Clock } from '../clock.js';

const EVERY_MS = 60_000;

export interface LimiterWarning {
  code: string;
  message: string;
}

/** What Redis says to a user that lacks a right, also from inside a script. */
export const MISSING_RIGHT = /NOPERM|can't (run|access)/;

/**
 * Resolves to what Redis said if it refused for a missing right, else to null. For calls that are no decisions: the
 * refusal is an answer, and must not count as a Redis that is silent.
 */
export async function refusalOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    const { message } = error as Error;
    if (MISSING_RIGHT.test(message)) return message;
    throw error;
  }
}

export type Warn = (code: string, message: string) => void;

export function createWarnings(
  clock: Clock,
  tell: (warning: LimiterWarning) => void = emitWarning,
): Warn {
  const lastMs = new Map<string, number>();
  return (code, message) => {
    const nowMs = clock.monotonicMs();
    const last = lastMs.get(code);
    if (last !== undefined && nowMs - last < EVERY_MS) return;
    lastMs.set(code, nowMs);
    // Warnings come amid decisions: what a service does with them, now or later, must not keep one from its answer.
    try {
      const told = tell({ code, message }) as unknown;
      if (told instanceof Promise) told.catch((error) => emitFailed(code, error));
    } catch (error) {
      emitFailed(code, error);
    }
  };
}

function emitFailed(code: string, error: unknown): void {
  const message = `onWarning threw when it was told of ${code}: ${String((error as Error)?.stack ?? error)}`;
  emitWarning({ code: 'FLYBALL_W_ON_WARNING', message });
}

function emitWarning({ code, message }: LimiterWarning): void {
  process.emitWarning(message, { type: 'FlyballWarning', code });
}
