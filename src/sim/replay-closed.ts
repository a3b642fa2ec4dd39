/** The worst hour of a recorded past, played on the plant that was fitted to it: there the service does answer. Stage: simulate. */
import { addBins, quantileOfBins } from '../histogram.js';
import type { Policy } from '../policy/schema.js';
import { byPolicy, type Controller, constant, noLimit } from './controllers.js';
import { type Fit, fitPlant, type NoFit } from './fit.js';
import type { Replayed } from './replay.js';
import type { Recorded } from './replay-recorded.js';
import { runScenario } from './run.js';
import { loadOf, type Scenario } from './scenario.js';
import { drawTraffic } from './traffic.js';

export interface ClosedRow {
  who: 'policy' | 'static' | 'none';
  /** Answers within the objective for response time. */
  goodPerSecond: number;
  p95Ms: number | null;
  deniedShare: number;
  changes: number;
}

export interface ClosedLoop {
  kind: 'played';
  fit: Fit;
  fromMs: number;
  toMs: number;
  /** As it was recorded: answers that were no failure, late ones among them. */
  recordedOkPerSecond: number;
  rows: ClosedRow[];
}

const STRETCH_MS = 3_600_000;
/** A shorter stretch rather than more requests than this. */
const MOST_REQUESTS = 1_500_000;
const SEED = 1;

/** Null in place of a loop: the history gives no plant, and why. */
export function closedLoop(policy: Policy, replayed: readonly Replayed[]): ClosedLoop | NoFit {
  const fit = fitPlant(pointsOf(replayed.map(({ recorded }) => recorded)));
  if (fit.kind === 'refused') return fit;
  const stretch = worst(replayed);
  const scenario = scenarioOf(stretch, fit.capacityPerSecond);
  const { service, capacityPerSecond } = fit;
  const load = loadOf(scenario, capacityPerSecond);
  const traffic = drawTraffic(load, 1000 * scenario.durationS, SEED);
  const options = { policy, scenario, service, capacityPerSecond, seed: SEED, traffic };
  const play = (who: ClosedRow['who'], controller: Controller, changes = () => 0): ClosedRow => {
    const seconds = runScenario(options, controller);
    const sum = (field: 'good' | 'denied' | 'attempts') =>
      seconds.reduce((total, second) => total + second[field], 0);
    const bins = {};
    for (const second of seconds) addBins(bins, second.latency);
    return {
      who,
      goodPerSecond: sum('good') / seconds.length,
      p95Ms: quantileOfBins(bins, 0.95),
      deniedShare: sum('denied') / Math.max(1, sum('attempts')),
      changes: changes(),
    };
  };
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  let changes = 0;
  const own = byPolicy(policy, () => changes++);
  const [first] = stretch;
  return {
    kind: 'played',
    fit,
    fromMs: first!.atMs,
    toMs: first!.atMs + 1000 * scenario.durationS,
    recordedOkPerSecond:
      stretch.reduce((sum, of) => sum + of.okPerSecond * of.spanMs, 0) /
      (1000 * scenario.durationS),
    rows: [
      play('policy', own, () => changes),
      play('static', constant({ rate, capacity, inFlightMax })),
      play('none', noLimit()),
    ],
  };
}

function pointsOf(recorded: readonly Recorded[]) {
  return recorded.flatMap(({ atMs, okPerSecond, failedPerSecond, meanMs, p95Ms, inFlight }) => {
    if (meanMs === null) return [];
    const point = { atMs, okPerSecond: okPerSecond + failedPerSecond, meanMs };
    return [
      {
        ...point,
        ...(p95Ms === null ? {} : { p95Ms }),
        ...(inFlight === null ? {} : { inFlight }),
      },
    ];
  });
}

/** The stretch without a gap in which most minutes missed an objective; of equals the one with most requests. */
function worst(replayed: readonly Replayed[]): Recorded[] {
  let best: { from: number; to: number; score: number } = { from: 0, to: 1, score: -1 };
  let from = 0;
  let requests = 0;
  let missed = 0;
  const weigh = (i: number, sign: 1 | -1) => {
    const { recorded, missed: names } = replayed[i]!;
    requests += (sign * recorded.offeredPerSecond * recorded.spanMs) / 1000;
    missed += sign * (names.length > 0 ? recorded.spanMs : 0);
  };
  for (let to = 0; to < replayed.length; to++) {
    const { recorded } = replayed[to]!;
    const before = replayed[to - 1]?.recorded;
    const isGap = before !== undefined && recorded.atMs > before.atMs + before.spanMs;
    weigh(to, 1);
    const tooLong = () =>
      recorded.atMs + recorded.spanMs - replayed[from]!.recorded.atMs > STRETCH_MS ||
      requests > MOST_REQUESTS;
    while (from < to && (isGap || tooLong())) weigh(from++, -1);
    const score = missed + requests / (MOST_REQUESTS + 1);
    if (score > best.score) best = { from, to: to + 1, score };
  }
  return replayed.slice(best.from, best.to).map(({ recorded }) => recorded);
}

/** The load that was offered; failures that were recorded come from upstream. */
function scenarioOf(stretch: readonly Recorded[], capacityPerSecond: number): Scenario {
  const startMs = stretch[0]!.atMs;
  const last = stretch.at(-1)!;
  const durationS = Math.round((last.atMs + last.spanMs - startMs) / 1000);
  const spanS = stretch[0]!.spanMs / 1000;
  return {
    name: 'recorded',
    says: 'the load that was recorded',
    durationS,
    phases: [0],
    disturbances: [],
    at(second) {
      const of = stretch[Math.min(stretch.length - 1, Math.max(0, Math.floor(second / spanS)))]!;
      const answers = of.okPerSecond + of.failedPerSecond;
      return {
        load: of.offeredPerSecond / capacityPerSecond,
        failRatio: answers > 0 ? of.failedPerSecond / answers : 0,
      };
    },
  };
}
