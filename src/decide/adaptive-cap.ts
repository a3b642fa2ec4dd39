/** Law `adaptive` where completions are seen: moves the in-flight cap, and beside it the rate as a ceiling. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { DEFAULT_LOOP, holdOffMs, type LoopTuning } from '../tune/loop-fit.js';
import { boundsOf, clamp } from './bounds.js';
import type { LimiterNumbers } from './breaker-types.js';
import { afterCut, type Episode, judge, NO_EPISODE, ownAim, relieve } from './futile.js';
import { type Law, listIn, numberIn, startingPoint } from './law.js';
import { expectedSlope, type Leisure, leastSlope, leisureOf, shownBy } from './leisure.js';
import { type Overload, overloadOf } from './overload.js';
import { type Reason, seenOf, trafficText } from './reasons.js';
import { addPoint, agePoints, responseSlope } from './response.js';
import type { LawMemory, Sample } from './types.js';

/**
 * With z the overload index, N the in flight observed by Little's law, s = d ln X ÷ d ln N the response of
 * throughput to the cap, over = z − ln(aim):
 *
 *   over > calm    cap ← min(cap, 1.05 · N) · exp(−cutPower · effect · over), at least × cutMost (from 2√N above
 *                  that, where the cap did not bind), where effect = 1 − s ÷ worthwhile near the aim, at least
 *                  1 − s above `firm`, at least graveEffect above `grave`, and 0 below `grave` once cuts have
 *                  proved futile
 *   over < −calmUp a cap that binds grows by exp(growPower · seconds · −over · 2s); one that does not bind stands at
 *                  least at idleRoom · N; nothing is learnt from idleness; calmUp shrinks as the aim rises
 *   else           nothing moves
 *   rate           a ceiling of rateRoom · verified good throughput: falls with a cut, rises when it binds
 *
 * Below the knee (s → 1) the aim rises toward aimMost: there, more in flight costs no latency. Before the cap has been
 * tried, s is what response time lets expect (leisure.ts): the mean tells a queue from a noisy quantile. After a cut
 * only answers of requests admitted since then are evidence, all that a quantile was taken from. The feasibility rule
 * is that of windowed concurrency limits, with the SLO in the place of a baseline latency, which drifts.
 */
export const TUNING = {
  aim: 0.72,
  aimMost: 0.95,
  /** Slope from which on the aim rises. */
  liftFrom: 0.4,
  /** Above the aim by this much a cut, below it by this much a raise: a cut costs more than a raise that waits. */
  calm: 0.2,
  calmUp: 0.15,
  /** Share of `calmUp` that is left out where the aim has risen: a raise costs little response time there. */
  nearer: 0.5,
  /** So many roots of what is under way a cap that did not bind keeps above it. */
  spread: 2,
  /** ms that a cut waits at most for a quantile to be of answers after the last one. */
  pooledMost: 8_000,
  cutPower: 0.7,
  cutMost: 0.6,
  /** Slope above which a cut near the aim is not worth its throughput. */
  worthwhile: 0.4,
  firm: 1,
  grave: 1.5,
  graveEffect: 0.3,
  growPower: 0.18,
  idleRoom: 2,
  rateRoom: 2,
  /** The verified throughput fades by this share a second. */
  fade: 0.002,
};

/** What one tick makes of memory and sample before anything moves. */
interface Evidence {
  overload: Overload;
  over: number;
  /** Cap in force, exact cap between two writes, in flight observed. */
  inForce: number;
  cap: number;
  observed: number;
  verified: number;
  points: number[];
  slope: number;
  leisure: Leisure;
  /** How far the aim has risen, 0 … 1. */
  lift: number;
  effect: number;
  /** The answers seen are of requests admitted after the last cut. */
  drained: boolean;
  capBinds: boolean;
  rateBinds: boolean;
  sinceCutMs: number;
  sinceMoveMs: number;
  episode: Episode;
  /** How long response time has been well below the aim. */
  reliefMs: number;
}

const LONG_MS = 3_600_000;

export const adaptiveCapLaw: Law = (policy, before, sample, loop = DEFAULT_LOOP) => {
  const { rate: rateBounds, inFlight } = boundsOf(policy);
  const range = inFlight ?? { min: 1, max: Number.MAX_SAFE_INTEGER };
  const start = startingPoint(sample);
  const seen = evidence(policy, before, sample, start.inFlightMax || range.max, loop);
  const { overload, over, inForce, reliefMs } = seen;
  let cap = inForce;
  let rate = start.rate;
  let reason: Reason = 'steady';
  let { episode, sinceCutMs } = seen;

  if (!overload.fresh || !sample.traffic.fresh) reason = 'no_evidence';
  else if (over > TUNING.calm && seen.drained) {
    episode = judge(episode, inForce, overload.z, sample.traffic.okRate, seen.slope);
    // However futile: far above the setpoint something must give, for a collapse too looks like that.
    const grave = overload.z > Math.log(TUNING.grave);
    const effect = episode.futile === 1 && !grave ? 0 : seen.effect;
    const factor = Math.max(TUNING.cutMost, Math.exp(-TUNING.cutPower * loop.cut * effect * over));
    const underWay = Math.max(seen.observed, sample.traffic.inFlightNow ?? 0);
    // A cap that binds clips what is under way; below it that is a mean, about which it varies by its root.
    const spread = seen.capBinds ? 0 : TUNING.spread * Math.sqrt(underWay);
    const base = effect > 0 ? Math.min(seen.cap, inForce, 1.05 * underWay + spread) : inForce;
    cap = clamp(base * factor, range.min, range.max);
    const ceiling = Math.max(rateBounds.min, TUNING.rateRoom * seen.verified);
    if (effect > 0 && ceiling < 0.8 * rate) rate = ceiling;
    if (Math.round(cap) < inForce || rate < start.rate) {
      reason = grave ? 'law_emergency_cut' : 'law_cut';
      episode = afterCut(episode, seen.sinceCutMs, inForce, overload.z, sample.traffic.okRate);
      sinceCutMs = 0;
    }
  } else if (over < -TUNING.calmUp * (1 - TUNING.nearer * seen.lift)) {
    if (episode.futile === 0) episode = NO_EPISODE;
    const raised = raise(seen, sample, rate, loop);
    cap = clamp(raised.inFlightMax, range.min, range.max);
    rate = raised.rate;
    reason = cap > inForce || rate > start.rate ? 'law_raise' : 'idle';
  }
  return {
    memory: {
      cap,
      sinceCutMs: Math.min(sinceCutMs, LONG_MS),
      sinceMoveMs: Math.min(seen.sinceMoveMs, LONG_MS),
      inForce,
      verified: seen.verified,
      points: seen.points,
      reliefMs,
      meanMs: seen.leisure.meanMs,
      leisureMs: seen.leisure.leisureMs,
      refCap: episode.refCap,
      refZ: episode.refZ,
      refX: episode.refX,
      futile: episode.futile,
    },
    rate,
    inFlightMax: Math.max(range.min, Math.round(cap)),
    reason,
    ...seenOf(policy, overload, overload.fresh ? trafficText(sample) : ''),
    terms: {
      z: overload.z,
      over,
      cap,
      observed: seen.observed,
      slope: seen.slope,
      meanMs: seen.leisure.meanMs,
      leisureMs: seen.leisure.leisureMs,
      effect: seen.effect,
      futile: episode.futile,
      verified: seen.verified,
      drained: +seen.drained,
      capBinds: +seen.capBinds,
      rateBinds: +seen.rateBinds,
    },
  };
};

function raise(seen: Evidence, sample: Sample, rate: number, loop: LoopTuning): LimiterNumbers {
  const seconds = Math.min(sample.traffic.intervalMs || 1000, 5_000) / 1000;
  let cap = Math.max(seen.cap, seen.inForce);
  if (seen.capBinds) {
    // A cap that was full for moments only (a pause of the service) has not bound for the rest of the time.
    const { deniedByCap, offeredRate } = sample.traffic;
    const full = seen.observed / (0.7 * seen.inForce);
    const bound = clamp(Math.max(full, (3 * deniedByCap) / Math.max(1, offeredRate)), 0, 1);
    const worth = bound * clamp(2 * seen.slope, 0.1, 1);
    cap *= Math.exp(TUNING.growPower * loop.raise * seconds * -seen.over * worth);
  } else cap = Math.max(seen.inForce, TUNING.idleRoom * seen.observed);
  const ceiling = seen.rateBinds ? TUNING.rateRoom * seen.verified : 0;
  return { inFlightMax: cap, rate: Math.max(rate, ceiling) };
}

/** Time in which the answers came in that a quantile was taken from: few a second, and it speaks of long ago. */
function pooledMs(overload: Overload, sample: Sample): number {
  const answers = sample.signals[overload.worst]?.count ?? 0;
  return Math.min((1000 * answers) / Math.max(1, sample.traffic.answerRate), TUNING.pooledMost);
}

function evidence(
  policy: Policy,
  before: LawMemory,
  sample: Sample,
  inForce: number,
  loop: LoopTuning,
): Evidence {
  const { traffic } = sample;
  const overload = overloadOf(policy, sample);
  const observed = Math.max(traffic.inFlight ?? 0, 0);
  // A person, a policy or a guard may have moved what is in force: follow it, keep only what rounding lost.
  const cap = clamp(numberIn(before, 'cap', inForce), 0.85 * inForce, 1.3 * inForce);
  const sinceCutMs = numberIn(before, 'sinceCutMs', LONG_MS) + sample.dtMs;
  const moved = numberIn(before, 'inForce', inForce) !== inForce;
  const sinceMoveMs = (moved ? 0 : numberIn(before, 'sinceMoveMs', 0)) + sample.dtMs;
  const faded = numberIn(before, 'verified', 0) * (1 - TUNING.fade) ** (sample.dtMs / 1000);
  const verified = Math.max(faded, traffic.fresh ? traffic.okRate : 0);

  const isLatency = policy.signals[overload.worst]?.stat === 'latency';
  const answeredMs = isLatency ? overload.value : (traffic.meanMs ?? 0);
  const reckonedMs = traffic.ageMs + 0.5 * traffic.intervalMs + answeredMs;
  const drained =
    sinceCutMs >= holdOffMs(loop, reckonedMs, traffic.ageMs) &&
    (!isLatency || sinceCutMs >= traffic.ageMs + pooledMs(overload, sample));
  const capBinds = traffic.deniedByCap > 0 || observed > 0.7 * cap;

  let points = agePoints(listIn(before, 'points'), sample.dtMs);
  const settled = sinceMoveMs >= traffic.ageMs + 0.9 * traffic.intervalMs;
  if (traffic.fresh && capBinds && drained && settled) {
    const at = clamp(observed, 0.7 * inForce, inForce);
    points = addPoint(points, at, traffic.okRate, traffic.answers);
  }
  const quiet = leisureOf(before, sample, capBinds);
  const shown = responseSlope(points, inForce, traffic.answers, expectedSlope(quiet));
  const leisure = capBinds && traffic.fresh ? shownBy(shown, quiet, sample.dtMs) : quiet;
  const slope = Math.max(shown, leastSlope(quiet));
  const lift = clamp((slope - TUNING.liftFrom) / (1 - TUNING.liftFrom), 0, 1);
  const aim = TUNING.aim ** loop.headroom;
  const { episode, reliefMs } = relieve(before, overload, aim, sample.dtMs);
  const lifted = aim + (TUNING.aimMost - aim) * lift;
  const over = overload.z - Math.log(ownAim(episode, lifted, TUNING.aimMost));
  let effect = clamp(1 - slope / TUNING.worthwhile, 0, 1);
  if (overload.z > Math.log(TUNING.firm)) effect = Math.max(effect, clamp(1 - slope, 0, 1));
  if (overload.z > Math.log(TUNING.grave)) effect = Math.max(effect, TUNING.graveEffect);
  return {
    overload,
    over,
    inForce,
    cap,
    observed,
    verified,
    points,
    slope,
    leisure,
    lift,
    effect,
    drained,
    capBinds,
    rateBinds: traffic.deniedByRate > 0,
    sinceCutMs,
    sinceMoveMs,
    episode,
    reliefMs,
  };
}
