/** The knee of a history, if it was ever near it and load explains its response times. Stage: tune. */
import type { HistoryRow } from '../redis/history-rows.js';
import { type Band, bandOf, blocksOf, spanOf } from './band.js';
import { addSums, fitQuality, type Knee, kneeOf, kneeSums } from './knee.js';
import { percentile, show } from './usable.js';

export type FoundKnee = Knee & { quality: number };

/** Fewer points of 20 s than this fit nothing. */
const LEAST_POINTS = 360;
/** A curve that explains less of the response time than this is not believed. */
const LEAST_QUALITY = 0.5;

/** All minutes but those with the breaker open or full of failures: what overload shows is what a knee is seen by. */
export function findKnee(
  history: readonly HistoryRow[],
  random: () => number,
): { knee: FoundKnee | null; band: Band | null; missing: string | null } {
  const none = (missing: string) => ({ knee: null, band: null, missing });
  const rows = history.filter(
    (row) => row.notClosedS === 0 && row.failed < 0.1 * (row.ok + row.failed),
  );
  const points = rows.flatMap((row) => row.points);
  const blocks = blocksOf(rows).map((block) => kneeSums(block.flatMap((row) => row.points)));
  const sums = addSums(blocks);
  const knee = sums.points < LEAST_POINTS ? null : kneeOf(sums);
  const most = percentile(
    points.map(([, n]) => n),
    0.99,
  );
  if (knee === null || most === null || most < 0.5 * knee.inFlight) {
    const seen = most === null ? '' : ` (at most ${show(most)} in flight)`;
    return none(
      `the knee: the service was never near it${seen}, so no cap and no bounds follow. A load test would show it.`,
    );
  }
  const quality = fitQuality(sums, knee.curve);
  if (quality < LEAST_QUALITY) {
    return none(
      `the knee: response time does not follow load (R² ${show(quality)}, ${LEAST_QUALITY} is needed), something else moves it.`,
    );
  }
  const kneeAt = (times: Uint16Array) => kneeOf(addSums(blocks, times))?.inFlight ?? null;
  const options = { random, spanMs: spanOf(rows) };
  const band = bandOf(knee.inFlight, blocks.length, kneeAt, options);
  return { knee: { ...knee, quality }, band, missing: null };
}
