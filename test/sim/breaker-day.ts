/** A day of answers by the second, drawn as counts: for tests of what trips a breaker, and when. Stage: test. */
import { breakerVerdict } from '../../src/decide/breaker-events.js';
import { addOutcomes, emptyOutcomes, outcomeCounts } from '../../src/estimate/outcomes.js';
import type { TelemetryReading } from '../../src/sense/readings.js';
import { byPolicy, type Change } from '../../src/sim/controllers.js';
import { createDecideState, type Policy } from '../../src/testing.js';
import { sampleOf } from './fixtures.js';

/** Uniform in (0, 1): xorshift, 32 bits; each seed its own row. */
export function draws(seed: number): () => number {
  let x = (seed * 2_654_435_761 + 1) >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return ((x >>> 0) + 0.5) / 4_294_967_296;
  };
}

/** Arrivals of a second: exact where they are few, by the normal law where they are many. */
export function poisson(mean: number, draw: () => number): number {
  if (mean > 200) {
    const gauss = Math.sqrt(-2 * Math.log(draw())) * Math.cos(2 * Math.PI * draw());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * gauss));
  }
  let count = -1;
  for (let left = Math.exp(mean); left >= 1; left *= draw()) count++;
  return count;
}

/** Failures among `n`: exact, by the gaps between them. */
export function binomial(n: number, share: number, draw: () => number): number {
  if (share >= 1) return n;
  let failed = 0;
  for (let at = 0; ; failed++) {
    at += 1 + Math.floor(Math.log(draw()) / Math.log1p(-share));
    if (at > n) return failed;
  }
}

export interface Day {
  perSecond: number;
  seconds: number;
  /** Share of failures in that second. */
  failing: (second: number) => number;
  seed: number;
}

/** The second in which a level of the breaker is passed, or null: what the breaker counts, and nothing beside it. */
export function firstTrip(
  policy: Policy,
  { perSecond, seconds, failing, seed }: Day,
): number | null {
  const draw = draws(seed);
  let outcomes = emptyOutcomes();
  const base = sampleOf();
  const memory = createDecideState(policy).memory.breaker;
  for (let second = 1; second <= seconds; second++) {
    const answers = poisson(perSecond, draw);
    const failed = binomial(answers, failing(second), draw);
    const telemetry = countsOf(1000 * second, answers, answers - failed, failed, 0);
    const { window, tick } = addOutcomes(policy, outcomes, telemetry);
    outcomes = window;
    const sample = { ...base, outcomes: outcomeCounts(policy, window, tick) };
    if (breakerVerdict(policy, memory, sample).event === 'trip') return second;
  }
  return null;
}

/** Plays the day through estimate and turn as the daemon does; the changes that it made. */
export function playDay(policy: Policy, { perSecond, seconds, failing, seed }: Day): Change[] {
  const changes: Change[] = [];
  const controller = byPolicy(policy, (change) => void changes.push(change));
  let inForce = controller.start;
  const draw = draws(seed);
  for (let second = 1; second <= seconds; second++) {
    const nowMs = 1000 * second;
    if (controller.dueMs <= nowMs) inForce = controller.due();
    const offered = poisson(perSecond, draw);
    const answers = Math.min(offered, Math.floor(inForce.rate));
    const failed = binomial(answers, failing(second), draw);
    const telemetry = countsOf(nowMs, offered, answers - failed, failed, inForce.generation);
    const next = controller.tick({ atMs: nowMs, telemetry, signals: {} }, nowMs, 1000);
    inForce = next ?? inForce;
  }
  return changes;
}

function countsOf(
  toMs: number,
  offered: number,
  ok: number,
  failed: number,
  generation: number,
): TelemetryReading {
  return {
    kind: 'telemetry',
    ...{ fromMs: toMs - 1000, toMs, processes: 4, reporting: 4 },
    ...{ offered, admitted: ok + failed, denied: {} },
    // Half of what fails has timed out.
    ...{ ok, failed, timedOut: Math.round(failed / 2), cancelled: 0 },
    ...{ latency: {}, latencySumMs: 50 * (ok + failed), codes: {}, upstreams: {} },
    ...{ dbWait: {}, dbWaitSumMs: 0, poolWaiting: null, inFlight: 0, oldestMs: 0 },
    generation: { id: generation, ok, failed, codes: {} },
  };
}
