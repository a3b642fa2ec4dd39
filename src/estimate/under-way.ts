/** Requests that are still running: how many have run for how long at least, from what came in since. Stage: estimate. */
import { binOf, type PackedBins } from '../histogram.js';
import type { TelemetryReading } from '../sense/readings.js';
import { soundOrNull } from './finite.js';

/** One interval of telemetry. */
export interface Entered {
  toMs: number;
  spanMs: number;
  admitted: number;
  inFlight: number;
}

/** What has run for longer than this is a stream or a leak, not a slow answer. */
const HORIZON_MS = 60_000;
const MOST = 60;

/** They lie in order: what is forgotten, or is not older than the newest, is at the ends. */
function withNewest(before: readonly Entered[], now: Entered): Entered[] {
  let from = 0;
  let to = before.length;
  while (to > 0 && before[to - 1]!.toMs >= now.toMs) to -= 1;
  while (from < to && now.toMs - before[from]!.toMs >= HORIZON_MS) from += 1;
  from = Math.max(from, to + 1 - MOST);
  const entered: Entered[] = new Array(to - from + 1);
  for (let i = from; i < to; i++) entered[i - from] = before[i]!;
  entered[to - from] = now;
  return entered;
}

/**
 * Of I in flight at most A(T) were admitted within the last T, so at least I − A(T) have run for longer: a slow
 * answer is seen while it is still to come. Those that are always there (long-lived streams) are not counted: the
 * least in flight of the last minute. Ages are the least they can be, and none is above the oldest that a process told.
 */
export function stillRunning(
  before: readonly Entered[],
  t: TelemetryReading,
): { entered: Entered[]; running: PackedBins } {
  const inFlight = soundOrNull(t.inFlight);
  const oldestMs = soundOrNull(t.oldestMs);
  // A process that reports no ends tells nothing of what is under way there.
  if (inFlight === null || oldestMs === null || t.reporting < t.processes) {
    return { entered: [], running: [] };
  }
  const now = { toMs: t.toMs, spanMs: t.toMs - t.fromMs, admitted: t.admitted, inFlight };
  const entered = withNewest(before, now);
  const running: PackedBins = [];
  if (oldestMs < now.spanMs || inFlight <= t.admitted) return { entered, running };

  const always = entered.reduce((least, e) => Math.min(least, e.inFlight), inFlight);
  let since = 0;
  let ageMs = 0;
  let older: number | null = null;
  for (let i = entered.length - 1; i >= 0; i--) {
    const { admitted, spanMs } = entered[i]!;
    const next = i > 0 ? t.toMs - entered[i - 1]!.toMs : ageMs + spanMs;
    since += admitted;
    const left = next > oldestMs ? 0 : Math.max(0, inFlight - since - always);
    if (older !== null && older > left) running.push(binOf(ageMs)!, older - left);
    older = left;
    ageMs = next;
    if (left === 0) break;
  }
  if (older !== null && older > 0) running.push(binOf(ageMs)!, older);
  return { entered, running };
}
