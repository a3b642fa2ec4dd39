/** What a breaker counts, of the newest generation only: by each of its levels, over the time that it looks back. Stage: estimate. */

import type { OutcomeCounts, TripCounts } from '../decide/breaker-types.js';
import { provenShare, type Trip, tripsOf } from '../decide/trips.js';
import type { Policy } from '../policy/schema.js';
import type { TelemetryReading } from '../sense/readings.js';
import { failuresOf, slowerThan } from './telemetry-frame.js';

/** How far back a ratio looks while fewer answers than that prove it. */
const LOOK_BACK_MS = 60_000;
const USUAL_MS = 2_000;

interface OutcomeFrame {
  atMs: number;
  ok: number;
  failed: number;
  /** By trip: answers that it looks at, and those of them that count against it. */
  answers: number[];
  matching: number[];
}

export interface OutcomeWindow {
  generation: number | null;
  /** The signals that the trips watch: frames of others are of no use. */
  of: string;
  /** Newest last. */
  frames: OutcomeFrame[];
  /** Failures since the last interval with a good answer. */
  inARow: number;
}

export function emptyOutcomes(): OutcomeWindow {
  return { generation: null, of: '', frames: [], inARow: 0 };
}

/** Adds one interval. Outcomes of an older generation than the newest seen are ignored. */
export function addOutcomes(
  policy: Policy,
  before: OutcomeWindow,
  t: TelemetryReading,
): { window: OutcomeWindow; tick: OutcomeFrame } {
  const trips = tripsOf(policy);
  const of = trips.map(({ on }) => on).join(' ');
  const window = before.of === of ? before : { ...before, of, frames: [] };
  const none = trips.map(() => 0);
  const seen = t.generation;
  if (seen === null || (window.generation !== null && seen.id < window.generation)) {
    const nothing = { atMs: t.toMs, ok: 0, failed: 0, answers: none, matching: none };
    return {
      window: { ...window, frames: recent(trips, window.frames, null, t.toMs) },
      tick: nothing,
    };
  }
  const same = seen.id === window.generation;
  // Within an interval nobody knows what came first: one good answer ends the row.
  const inARow = seen.ok > 0 ? 0 : (same ? window.inARow : 0) + seen.failed;
  const counted = trips.map((trip) => countedBy(trip, t, seen));
  const tick: OutcomeFrame = {
    atMs: t.toMs,
    ok: seen.ok,
    failed: seen.failed,
    answers: counted.map(({ answers }) => answers),
    matching: counted.map(({ matching }) => matching),
  };
  const frames = recent(trips, same ? window.frames : [], tick, t.toMs);
  return { window: { generation: seen.id, of, frames, inARow }, tick };
}

/**
 * Times, slow answers and upstreams are not counted by generation: the smaller of the number and of the answers of this
 * generation is surely of this one.
 */
function countedBy(
  { signal }: Trip,
  t: TelemetryReading,
  seen: NonNullable<TelemetryReading['generation']>,
): { answers: number; matching: number } {
  const answers = seen.ok + seen.failed;
  if (signal?.source !== 'telemetry') return { answers, matching: seen.failed };
  switch (signal.stat) {
    case 'errors': {
      const inGeneration = signal.code === undefined ? seen.failed : (seen.codes[signal.code] ?? 0);
      const matching =
        signal.upstream === undefined
          ? inGeneration
          : Math.min(inGeneration, failuresOf(signal, t));
      return { answers, matching };
    }
    case 'errorRatio': {
      const inGeneration = signal.code === undefined ? seen.failed : (seen.codes[signal.code] ?? 0);
      if (signal.upstream === undefined) return { answers, matching: inGeneration };
      const { ok = 0, failed = 0 } = t.upstreams[signal.upstream] ?? {};
      const matching = Math.min(inGeneration, failuresOf(signal, t));
      return { answers: Math.min(seen.ok, ok) + Math.min(seen.failed, failed), matching };
    }
    case 'timeoutRatio':
      return { answers, matching: Math.min(seen.failed, t.timedOut) };
    case 'slowRatio':
      return { answers, matching: Math.min(answers, slowerThan(t, signal.over)) };
    default:
      return { answers, matching: seen.failed };
  }
}

/** With `newest`. They lie in order. The newest stays even when it spoke of longer than the window: it is all there is. */
function recent(
  trips: readonly Trip[],
  frames: readonly OutcomeFrame[],
  newest: OutcomeFrame | null,
  nowMs: number,
): OutcomeFrame[] {
  let keepMs = LOOK_BACK_MS;
  for (const { perMs } of trips) keepMs = Math.max(keepMs, perMs);
  const last = newest === null ? frames.length - 1 : frames.length;
  let from = 0;
  while (from < last && nowMs - frames[from]!.atMs >= keepMs) from += 1;
  if (newest === null) return frames.slice(from);
  // Of just the size: what is pushed to a list is copied with room to spare.
  const kept: OutcomeFrame[] = new Array(last - from + 1);
  for (let i = from; i < last; i++) kept[i - from] = frames[i]!;
  kept[last - from] = newest;
  return kept;
}

export function outcomeCounts(
  policy: Policy,
  window: OutcomeWindow,
  tick: OutcomeFrame | null,
): OutcomeCounts {
  const trips = tripsOf(policy);
  const counts = trips.map((trip, i) => countsOf(trip, i, window, tick));
  const plain = isPlain(trips);
  const all = within(window.frames, trips[0]?.perMs || USUAL_MS);
  const { answers, matching, windowMs } = counts[0] ?? {
    ...{ answers: all.ok + all.failed, matching: all.failed, windowMs: USUAL_MS },
  };
  // A ratio may have looked further back than its window.
  const failed = plain && trips[0]?.kind === 'ratio' ? matching : all.failed;
  return {
    generation: window.generation,
    ok: plain && trips[0]?.kind === 'ratio' ? answers - matching : all.ok,
    failed,
    matching,
    windowMs,
    fresh: tick !== null,
    tick: probesOf(trips, tick),
    ...(plain ? {} : { trips: counts }),
  };
}

const NOTHING = { answers: 0, matching: 0, tick: 0 };

/** One level, by all answers or by failures among them: then the counts of old say it all. */
function isPlain(trips: readonly Trip[]): boolean {
  const [first, ...others] = trips;
  if (first?.signal === undefined || others.length > 0) return others.length === 0;
  const { signal } = first;
  return (
    signal.stat === 'errors' ||
    (signal.stat === 'errorRatio' && !('upstream' in signal || 'code' in signal))
  );
}

function countsOf(
  trip: Trip,
  i: number,
  window: OutcomeWindow,
  tick: OutcomeFrame | null,
): TripCounts {
  const now = tick?.matching[i] ?? 0;
  if (trip.kind === 'level') return { ...NOTHING, windowMs: trip.perMs };
  if (trip.kind === 'run') {
    return { answers: window.inARow, matching: window.inARow, windowMs: 0, tick: now };
  }
  const usual = { ...summed(window.frames, i, trip.perMs), windowMs: trip.perMs, tick: now };
  return trip.kind === 'ratio' ? lookBack(trip, i, window.frames, usual) : usual;
}

/**
 * The usual window, or, when it is above the level and too few to prove it, the one of all that reach further back that
 * proves most: at 5 answers a second 80 % failures are proven in 6 s, and not in any 2.
 */
function lookBack(
  trip: Trip,
  i: number,
  frames: readonly OutcomeFrame[],
  usual: TripCounts,
): TripCounts {
  const newestMs = frames[frames.length - 1]?.atMs ?? 0;
  if (usual.answers === 0 || usual.matching / usual.answers <= trip.above) return usual;
  const everyMs = newestMs - (frames[frames.length - 2]?.atMs ?? newestMs);
  let best = usual;
  let proven = usual.answers < trip.minAnswers ? 0 : provenShare(usual.matching, usual.answers);
  let answers = 0;
  let matching = 0;
  for (let at = frames.length - 1; at >= 0 && proven <= trip.above; at--) {
    const frame = frames[at]!;
    const backMs = newestMs - frame.atMs;
    if (backMs >= Math.max(LOOK_BACK_MS, trip.perMs)) break;
    answers += frame.answers[i] ?? 0;
    matching += frame.matching[i] ?? 0;
    if (backMs < trip.perMs || answers < trip.minAnswers) continue;
    const share = provenShare(matching, answers);
    if (share <= proven) continue;
    proven = share;
    best = { answers, matching, windowMs: backMs + everyMs, tick: usual.tick };
  }
  return best;
}

/** Good and bad answers of this tick, which is what half-open's probes are judged by. */
function probesOf(trips: readonly Trip[], tick: OutcomeFrame | null): OutcomeCounts['tick'] {
  if (tick === null) return { ok: 0, matching: 0 };
  const bad = trips.map(({ kind }, i) => (kind === 'level' ? 0 : (tick.matching[i] ?? 0)));
  const matching = trips.length === 0 ? tick.failed : Math.max(...bad);
  const slow = trips.some(({ signal }) => signal?.stat === 'slowRatio');
  const ok = slow ? Math.min(tick.ok, tick.ok + tick.failed - matching) : tick.ok;
  return { ok: Math.max(0, ok), matching };
}

function summed(frames: readonly OutcomeFrame[], i: number, perMs: number) {
  const newestMs = frames[frames.length - 1]?.atMs ?? 0;
  let answers = 0;
  let matching = 0;
  for (let at = frames.length - 1; at >= 0; at--) {
    const frame = frames[at]!;
    if (at < frames.length - 1 && newestMs - frame.atMs >= perMs) break;
    answers += frame.answers[i] ?? 0;
    matching += frame.matching[i] ?? 0;
  }
  return { answers, matching };
}

function within(frames: readonly OutcomeFrame[], perMs: number) {
  const newestMs = frames[frames.length - 1]?.atMs ?? 0;
  let ok = 0;
  let failed = 0;
  for (let at = frames.length - 1; at >= 0; at--) {
    const frame = frames[at]!;
    if (at < frames.length - 1 && newestMs - frame.atMs >= perMs) break;
    ok += frame.ok;
    failed += frame.failed;
  }
  return { ok, failed };
}
