/** Until a take that a leaky bucket has admitted may proceed. Stage: enforce. */
import { onAbort } from './abort.js';
import type { TakeDecision } from './decision.js';

/** A timer set further ahead fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `then` after `delayMs`, or after 24 days, whichever is sooner; returns how to cancel. */
export function after(delayMs: number, then: () => void): () => void {
  const timer = setTimeout(then, Math.min(LONGEST_MS, delayMs));
  return () => clearTimeout(timer);
}

/** Rejects with the signal's reason. */
export function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((ok, no) => {
    signal?.throwIfAborted();
    const cancel = after(delayMs, () => {
      follow?.();
      ok();
    });
    const follow =
      signal &&
      onAbort(signal, () => {
        cancel();
        no(signal.reason);
      });
  });
}

/** Settles when the take may proceed; who leaves before gives back what goes back, and is no longer under way. */
export async function paced(decision: TakeDecision, signal?: AbortSignal): Promise<void> {
  if (decision.delayMs === 0) return;
  try {
    await pause(decision.delayMs, signal);
  } catch (error) {
    void decision.refund();
    decision.done('cancelled');
    throw error;
  }
}
