/** Capacity from history: the off-peak P99.9, how many instances there are, and what the owner says of them. Stage: tune. */
import type { HistoryRow } from '../redis/history-rows.js';
import { type Sized, sizeOf } from './capacity.js';
import type { Knee } from './knee.js';
import { percentile } from './usable.js';

/** What a history cannot show, or what its owner knows better: from the policy's `tune`, or the command line. */
export interface ServiceFacts {
  slotsPerInstance?: number | undefined;
  instances?: number | undefined;
  /** Of all instances together. */
  connections?: number | undefined;
  holdMs?: number | undefined;
}

/** Answers of all off-peak minutes below which a thousandth is a guess. */
const LEAST_ANSWERS = 5_000;

export function capacityFrom(
  rows: readonly HistoryRow[],
  facts: ServiceFacts,
  knee: Knee | null,
  rate: number,
): { sized: Sized | null; missing: string | null } {
  const offPeak = offPeakOf(rows);
  if (offPeak === null) {
    return {
      sized: null,
      missing: `the capacity: fewer than ${LEAST_ANSWERS} answers off peak say too little of their slowest thousandth.`,
    };
  }
  const seen = percentile(
    rows.map((row) => row.reporting).filter((n) => n > 0),
    0.5,
  );
  const instances = facts.instances ?? (seen === null ? null : Math.max(1, Math.round(seen)));
  if (instances === null) {
    return {
      sized: null,
      missing: 'the capacity: no process reports completions. Give tune.instances.',
    };
  }
  const slotsPerInstance =
    facts.slotsPerInstance ??
    (knee === null ? null : Math.max(1, Math.floor(knee.inFlight / instances)));
  if (slotsPerInstance === null) {
    return {
      sized: null,
      missing:
        'the capacity: how many requests an instance serves at a time is not known. Give tune.slotsPerInstance.',
    };
  }
  const { p999Ms } = offPeak;
  const { connections, holdMs = offPeak.holdMs } = facts;
  return {
    sized: sizeOf({ p999Ms, slotsPerInstance, instances, connections, holdMs, rate }),
    missing: null,
  };
}

/**
 * Off peak: the half of the minutes with the least requests under way. P99.9: a minute of n answers gives its own
 * P99.9, which for n < 1000 is just its slowest; over all minutes the value is taken at the level 0.999ⁿ, at which the
 * slowest of n lies below the true P99.9 (at least the median, which is right from about 700 answers a minute on).
 * A connection is held at most for as long as a request lasts, less the wait for the connection.
 */
export function offPeakOf(rows: readonly HistoryRow[]): { p999Ms: number; holdMs: number } | null {
  const known = rows.filter((row) => row.p999Ms !== null && row.meanMs !== null);
  const load = (row: HistoryRow) => row.inFlight ?? (row.ok * row.meanMs!) / 60_000;
  const middle = percentile(known.map(load), 0.5);
  if (middle === null) return null;
  const calm = known.filter((row) => load(row) <= middle);
  const answers = calm.reduce((sum, row) => sum + row.ok + row.failed, 0);
  if (answers < LEAST_ANSWERS) return null;
  const level = Math.max(0.5, 0.999 ** (answers / calm.length));
  const holds = calm.map((row) => Math.max(0.001, row.meanMs! - (row.dbWaitMs ?? 0)));
  return {
    p999Ms: percentile(
      calm.map((row) => row.p999Ms!),
      level,
    )!,
    holdMs: percentile(holds, 0.5)!,
  };
}
