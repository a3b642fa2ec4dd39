/** A plant from a service's own history: contention by the Universal Scalability Law, fitted by least squares. Stage: simulate. */
import { leastSquares } from './least-squares.js';
import { carriedOf, peakPerSecond, type ServiceModel } from './service.js';

/** Means of a stretch of time: of a minute, or of a second. */
export interface HistoryPoint {
  atMs: number;
  /** Good answers, in time or late. */
  okPerSecond: number;
  /** Mean response time of all answers. */
  meanMs: number;
  p95Ms?: number;
  /** Mean number of requests under way; else throughput × response time, by Little's law. */
  inFlight?: number;
}

type Range = [least: number, most: number];

export interface Fit {
  kind: 'fitted';
  service: ServiceModel;
  /** What the service carries for long. */
  capacityPerSecond: number;
  /** Mean response time with nobody else there. */
  leisureMs: number;
  /** R² of the logarithm of response time over load: 1 explains all of it. */
  quality: number;
  points: number;
  /** Points set aside as outliers. */
  leftOut: number;
  /** What the history has seen; beyond it the plant is a guess. */
  seen: { perSecond: Range; inFlight: Range; meanMs: Range };
}

export interface NoFit {
  kind: 'refused';
  reason: 'few_points' | 'few_in_flight' | 'no_knee' | 'poor';
  /** What is missing, and how to get it. */
  message: string;
  /** The service carries at least this; null: not even that is known. */
  atLeastPerSecond: number | null;
}

interface Load {
  perSecond: number;
  meanMs: number;
  p95Ms: number | null;
  inFlight: number;
}

const LEAST_POINTS = 20;
/** Points are averaged until they stand for so long and so many answers: seconds alone are mostly noise. */
const TOGETHER = { leastMs: 10_000, mostMs: 60_000, answers: 400 };
/** Near the knee response time has grown by so much, and in flight is so large a share of what is there at the peak. */
const KNEE = { stretch: 1.25, inFlight: 0.3 };
/** With fewer under way at the most, contention cannot be told from chance. */
const LEAST_IN_FLIGHT = 2;
const LEAST_QUALITY = 0.5;
/** Residuals beyond so many median deviations are outliers. */
const OUTLIER = 6;
/** More of them than this share are no outliers. */
const MOST_OUTLIERS = 0.2;
const DEFAULT_CV = 0.8;

/**
 * With m others at work a request takes a · (1 + α·m + β·m·(m+1)): the law, seen by who arrives. Arrivals come at
 * random, so that m is Poisson about the mean in flight N, and on average R = a + aα·N + aβ·(N² + 2N): linear in three
 * unknowns.
 */
export function fitPlant(history: readonly HistoryPoint[]): Fit | NoFit {
  const loads = together(history);
  if (loads.length < LEAST_POINTS) {
    const message = `${loads.length} usable points are too few: at least ${LEAST_POINTS} minutes (or ${
      (LEAST_POINTS * TOGETHER.mostMs) / 60_000
    } minutes of seconds) with traffic are needed.`;
    return { kind: 'refused', reason: 'few_points', message, atLeastPerSecond: null };
  }
  const first = fitCurve(loads);
  const kept = withoutOutliers(loads, first);
  const curve = kept.length === loads.length ? first : fitCurve(kept);
  const [a, b, c] = curve;
  const most = quantile(
    kept.map(({ perSecond }) => perSecond),
    0.99,
  );
  const inFlight = kept.map((load) => load.inFlight);
  const stretch =
    quantile(
      kept.map(({ meanMs }) => meanMs),
      0.98,
    ) / a;
  const atPeak = c > 0 ? Math.sqrt(a / c) : 3 / Math.max(b / a, 1e-9);
  if (stretch < KNEE.stretch || quantile(inFlight, 0.98) < KNEE.inFlight * atPeak) {
    const message =
      `the history never came near the knee: at the most, ${show(most)} answers a second, response time was ` +
      `${show(stretch)} × that at leisure. The service carries at least ${show(most)}/s; how much more is unknown. ` +
      'Give a history with an overload in it (a load test will do), or simulate without --fit.';
    return { kind: 'refused', reason: 'no_knee', message, atLeastPerSecond: most };
  }
  if (quantile(inFlight, 0.98) < LEAST_IN_FLIGHT) {
    const message =
      `at the most ${show(quantile(inFlight, 0.98))} requests were under way at once: with fewer than ` +
      `${LEAST_IN_FLIGHT} contention cannot be told from chance. Simulate without --fit.`;
    return { kind: 'refused', reason: 'few_in_flight', message, atLeastPerSecond: most };
  }
  const quality = explained(kept, curve);
  if (quality < LEAST_QUALITY) {
    const message =
      `response time does not follow load: R² is ${show(quality)}, at least ${LEAST_QUALITY} is needed. Something else ` +
      'moves it. Take a stretch of time without deploys and outages, of this service alone.';
    return { kind: 'refused', reason: 'poor', message, atLeastPerSecond: most };
  }
  const service = serviceFrom(curve, cvOf(kept), most);
  return {
    kind: 'fitted',
    service,
    capacityPerSecond: carriedOf(service),
    leisureMs: a,
    quality,
    points: loads.length,
    leftOut: loads.length - kept.length,
    seen: {
      perSecond: range(kept.map(({ perSecond }) => perSecond)),
      inFlight: range(inFlight),
      meanMs: range(kept.map(({ meanMs }) => meanMs)),
    },
  };
}

type Curve = [a: number, b: number, c: number];

const terms = (n: number): Curve => [1, n, n * n + 2 * n];
const timeAt = ([a, b, c]: Curve, n: number) => a + b * n + c * (n * n + 2 * n);

/** Relative errors are made small, so that the overload does not drown the leisure. None of the three is negative. */
function fitCurve(loads: readonly Load[]): Curve {
  const rows = loads.map(({ inFlight, meanMs }) => terms(inFlight).map((term) => term / meanMs));
  const ones = loads.map(() => 1);
  return leastSquares(rows, ones) as Curve;
}

function withoutOutliers(loads: readonly Load[], curve: Curve): readonly Load[] {
  const residuals = loads.map(({ inFlight, meanMs }) =>
    Math.abs(Math.log(meanMs / timeAt(curve, inFlight))),
  );
  const limit = OUTLIER * Math.max(0.01, quantile(residuals, 0.5));
  const kept = loads.filter((_, i) => residuals[i]! <= limit);
  return kept.length < (1 - MOST_OUTLIERS) * loads.length ? loads : kept;
}

function explained(loads: readonly Load[], curve: Curve): number {
  const logs = loads.map(({ meanMs }) => Math.log(meanMs));
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  let left = 0;
  let all = 0;
  loads.forEach(({ inFlight }, i) => {
    left += (logs[i]! - Math.log(timeAt(curve, inFlight))) ** 2;
    all += (logs[i]! - mean) ** 2;
  });
  return all > 0 ? 1 - left / all : 0;
}

/** All of the response time as the service's own part: what of it is a database the history does not say. */
function serviceFrom([a, b, c]: Curve, cv: number, mostPerSecond: number): ServiceModel {
  const model: ServiceModel = {
    workers: 1e6,
    queueMax: Math.ceil(20 * mostPerSecond),
    app: { kind: 'lognormal', meanMs: a, cv },
    alpha: b / a,
    beta: c / a,
    pool: null,
    upstreamMs: 0,
    upstreamFailMs: 5,
  };
  // Far beyond the peak a service has no more threads; what comes then waits.
  const peak = c > 0 ? Math.sqrt(a / c) : (4 * peakPerSecond(model) * a) / 1000;
  return { ...model, workers: Math.max(4, Math.ceil(4 * peak)) };
}

/** Of the third with the least load, by the ratio of p95 to the mean of a lognormal distribution. */
function cvOf(loads: readonly Load[]): number {
  const calm = [...loads].sort((x, y) => x.inFlight - y.inFlight);
  const ratios = calm
    .slice(0, Math.ceil(calm.length / 3))
    .flatMap(({ p95Ms, meanMs }) => (p95Ms === null ? [] : [p95Ms / meanMs]));
  if (ratios.length < 5) return DEFAULT_CV;
  // ln(p95 ÷ mean) = 1.645·σ − σ² ÷ 2, for σ up to its greatest value.
  const log = Math.min(1.35, Math.max(0, Math.log(quantile(ratios, 0.5))));
  const sigma = 1.645 - Math.sqrt(1.645 ** 2 - 2 * log);
  return Math.min(2, Math.max(0.05, Math.sqrt(Math.exp(sigma ** 2) - 1)));
}

/** Usable points, averaged where they stand for little. */
function together(history: readonly HistoryPoint[]): Load[] {
  const usable = history
    .filter(({ okPerSecond, meanMs }) => okPerSecond > 0 && meanMs > 0)
    .sort((x, y) => x.atMs - y.atMs);
  const loads: Load[] = [];
  for (let i = 0; i < usable.length; ) {
    const startMs = usable[i]!.atMs;
    const group: HistoryPoint[] = [];
    for (let seen = 0; i < usable.length; i++) {
      const spanMs = usable[i]!.atMs - startMs;
      const enough = spanMs >= TOGETHER.leastMs && seen >= TOGETHER.answers;
      if (enough || spanMs >= TOGETHER.mostMs) break;
      seen += usable[i]!.okPerSecond;
      group.push(usable[i]!);
    }
    const answers = group.reduce((sum, { okPerSecond }) => sum + okPerSecond, 0);
    const mean = (of: (point: HistoryPoint) => number) =>
      group.reduce((sum, point) => sum + of(point) * point.okPerSecond, 0) / answers;
    const meanMs = mean(({ meanMs }) => meanMs);
    const perSecond = answers / group.length;
    const counted = group.flatMap(({ inFlight }) => inFlight ?? []);
    const inFlight =
      counted.length === group.length
        ? counted.reduce((sum, n) => sum + n, 0) / counted.length
        : (perSecond * meanMs) / 1000;
    const p95Ms = group.every((point) => point.p95Ms !== undefined)
      ? mean(({ p95Ms }) => p95Ms!)
      : null;
    loads.push({ perSecond, meanMs, p95Ms, inFlight });
  }
  return loads;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

function range(values: readonly number[]): Range {
  return [quantile(values, 0), quantile(values, 1)];
}

function show(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(2);
}
