/** For how long an objective has been missed, by the moments its readings speak of. Stage: estimate. */
import type { SignalEstimate } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/**
 * Since when (ms) the objective of that signal is missed, or null while it holds. Only a fresh value tells; one that is
 * merely thin, or not new, changes nothing; a signal that is lost begins anew.
 */
export function missedSince(
  objective: Policy['objective'][string] | undefined,
  before: number | null,
  estimate: SignalEstimate,
  newestMs: number,
): number | null {
  if (objective === undefined) return null;
  if (!estimate.fresh || estimate.value === null) {
    const waits = estimate.reason === undefined || estimate.reason === 'thin';
    return waits ? before : null;
  }
  const { below = Number.POSITIVE_INFINITY, above = Number.NEGATIVE_INFINITY } = objective;
  const missed = estimate.value > below || estimate.value < above;
  if (!missed) return null;
  // A clock that was set back must not make it last longer than it did.
  return before === null || before > newestMs ? newestMs : before;
}
