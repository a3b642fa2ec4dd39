/** For how long an objective has been missed, by the moments its readings speak of. Stage: estimate. */
import { provenShare } from '../decide/trips.js';
import type { SignalEstimate } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/**
 * Since when (ms) the objective of that signal is missed, or null while it holds. Only a fresh value tells; one that is
 * merely thin, or not new, changes nothing; a signal that is lost begins anew. A share of the answers (`isShare`) is
 * above its level once that many answers prove it.
 */
export function missedSince(
  objective: Policy['objective'][string] | undefined,
  before: number | null,
  estimate: SignalEstimate,
  newestMs: number,
  isShare = false,
): number | null {
  if (objective === undefined) return null;
  if (!estimate.fresh || estimate.value === null) {
    const waits = estimate.reason === undefined || estimate.reason === 'thin';
    return waits ? before : null;
  }
  const { below = Number.POSITIVE_INFINITY, above = Number.NEGATIVE_INFINITY } = objective;
  const { value, count } = estimate;
  const atLeast = isShare ? provenShare(value * count, count) : value;
  const missed = atLeast > below || value < above;
  if (!missed) return null;
  // A clock that was set back must not make it last longer than it did.
  return before === null || before > newestMs ? newestMs : before;
}
