/** How fast the rate went to zero when the upstream failed, and came back when it returned. Pure. Stage: demo. */
import type { PlayRecord } from './play.js';

export interface BreakerTimes {
  /** ms from the failure to a rate of zero; null: never. */
  zeroAfterMs: number | null;
  /** ms from the upstream's return to a lasting rate of at least 80 % of the one before the failure; null: never. */
  backAfterMs: number | null;
  rateBefore: number | null;
}

const BACK_SHARE = 0.8;

export function breakerTimes(record: PlayRecord): BreakerTimes {
  const failure = record.phases.find((phase) => phase.upstreamFails)!;
  const failedAt = record.startedAtMs + failure.from * 1000;
  const returnedAt = failedAt + failure.seconds * 1000;
  const looks = record.seconds.flatMap((second) => second.looks);
  const rateBefore = looks.filter((look) => look.atMs < failedAt).at(-1)?.rate ?? null;
  const zero = looks.find((look) => look.atMs >= failedAt && look.rate === 0);
  const after = looks.filter((look) => look.atMs >= returnedAt);
  const low = after.findLastIndex((look) => look.rate < BACK_SHARE * (rateBefore ?? 0));
  const back = after[low + 1];
  return {
    zeroAfterMs: zero ? zero.atMs - failedAt : null,
    backAfterMs: rateBefore !== null && back ? back.atMs - returnedAt : null,
    rateBefore,
  };
}
