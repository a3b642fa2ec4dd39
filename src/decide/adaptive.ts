/** Law `adaptive`: moves the in-flight cap, and beside it the rate as a ceiling over what was verified. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { adaptiveRateLaw } from './adaptive-rate.js';
import { boundsOf, clamp } from './bounds.js';
import { type Law, listIn, numberIn, startingPoint } from './law.js';
import { overloadOf } from './overload.js';
import { overloadText, type Reason, trafficText } from './reasons.js';
import { addPoint, agePoints, responseSlope } from './response.js';

export const TUNING = {
  /** Aim for this share of the setpoint: the room that noise and the next burst need. */
  aim: 0.72,
  /** Within this of the aim (log), nothing moves. */
  calm: 0.12,
  /** Exponent of a cut at full effect, and the most one cut takes. */
  cutPower: 0.7,
  cutMost: 0.6,
  /** Aim below the knee, and the slope from which on it moves there. */
  aimMost: 0.9,
  liftFrom: 0.4,
  /** Slope above which a cut near the aim is not worth its throughput. */
  worthwhile: 0.4,
  /** Share of the setpoint above which a cut may cost more. */
  firm: 0.9,
  /** Above this share of the setpoint a cut has at least half its effect, whatever the response. */
  grave: 1.5,
  graveEffect: 0.3,
  /** Exponent of a raise a second of data. */
  growPower: 0.18,
  /** A cap that does not bind stands at least this far above what is seen. */
  idleRoom: 2,
  /** The rate ceiling over verified good throughput. */
  rateRoom: 2,
  /** The verified throughput fades by this share a second. */
  fade: 0.002,
};

/** The cap form; `adaptive-rate.ts` takes over where completions are not seen. */
const capLaw: Law = (policy, before, sample) => {
  const bounds = boundsOf(policy);
  const range = bounds.inFlight ?? { min: 1, max: Number.MAX_SAFE_INTEGER };
  const start = startingPoint(sample);
  const overload = overloadOf(policy, sample);
  const { traffic } = sample;
  const capped = bounds.inFlight !== null;
  const inForce = start.inFlightMax || range.max;
  let cap = clamp(numberIn(before, 'cap', inForce), range.min, range.max);
  // A person, a policy or a guard may have moved what is in force: follow it, keep only what rounding lost.
  cap = clamp(cap, 0.85 * inForce, 1.3 * inForce);
  let rate = start.rate;
  const observed = Math.max(traffic.inFlight ?? 0, 0);
  const seconds = Math.min(traffic.intervalMs || 1000, 5_000) / 1000;
  let reason: Reason = 'steady';
  let sinceCutMs = numberIn(before, 'sinceCutMs', 3_600_000) + sample.dtMs;
  const sinceMoveMs =
    numberIn(before, 'inForce', inForce) === inForce
      ? numberIn(before, 'sinceMoveMs', 0) + sample.dtMs
      : sample.dtMs;
  const fade = (1 - TUNING.fade) ** (sample.dtMs / 1000);
  const verified = Math.max(
    numberIn(before, 'verified', 0) * fade,
    traffic.fresh ? traffic.okRate : 0,
  );

  // Answers of requests that were admitted before the last cut say nothing of what it did.
  const answeredMs =
    overload.value > 0 && isLatency(policy, overload.worst)
      ? overload.value
      : (traffic.meanMs ?? 0);
  const deadMs = traffic.ageMs + 0.5 * traffic.intervalMs + answeredMs;
  const drained = sinceCutMs >= deadMs;
  const capBinds = traffic.deniedByCap > 0 || observed > 0.7 * cap;
  const rateBinds = traffic.deniedByRate > 0;

  let points = agePoints(listIn(before, 'points'), sample.dtMs);
  if (
    traffic.fresh &&
    capBinds &&
    drained &&
    sinceMoveMs >= traffic.ageMs + 0.9 * traffic.intervalMs
  ) {
    points = addPoint(points, Math.min(inForce, Math.max(observed, 0.7 * inForce)), traffic.okRate);
  }
  const slope = responseSlope(points, inForce);
  // Below the knee more in flight costs no latency: aim closer to the setpoint.
  const lift = clamp((slope - TUNING.liftFrom) / (1 - TUNING.liftFrom), 0, 1);
  const over = overload.z - Math.log(TUNING.aim + (TUNING.aimMost - TUNING.aim) * lift);
  // Near the aim a cut must cost little throughput; past the setpoint itself it may cost more.
  const shy = clamp(1 - slope / TUNING.worthwhile, 0, 1);
  let effect = overload.z > Math.log(TUNING.firm) ? Math.max(shy, clamp(1 - slope, 0, 1)) : shy;

  if (!overload.fresh || !traffic.fresh) reason = 'no_evidence';
  else if (over > TUNING.calm) {
    if (drained) {
      if (overload.z > Math.log(TUNING.grave)) effect = Math.max(effect, TUNING.graveEffect);
      const factor = Math.max(TUNING.cutMost, Math.exp(-TUNING.cutPower * effect * over));
      const base = Math.min(cap, inForce, 1.05 * Math.max(observed, traffic.inFlightNow ?? 0));
      cap = base * factor;
      reason = 'law_cut';
      sinceCutMs = 0;
      const ceiling = TUNING.rateRoom * verified;
      if (ceiling < 0.8 * rate) rate = Math.max(bounds.rate.min, ceiling);
    }
  } else if (over < -TUNING.calm) {
    cap = Math.max(cap, inForce);
    if (capBinds) {
      cap *= Math.exp(TUNING.growPower * seconds * -over * clamp(2 * slope, 0.1, 1));
      reason = 'law_raise';
    } else if (cap < TUNING.idleRoom * observed) {
      cap = TUNING.idleRoom * observed;
      reason = 'law_raise';
    }
    if (rateBinds) {
      rate = Math.max(rate, TUNING.rateRoom * verified);
      reason = 'law_raise';
    }
  }
  cap = clamp(reason === 'law_cut' || reason === 'law_raise' ? cap : inForce, range.min, range.max);
  return {
    memory: {
      cap,
      sinceCutMs: Math.min(sinceCutMs, 3_600_000),
      sinceMoveMs: Math.min(sinceMoveMs, 3_600_000),
      inForce,
      verified,
      points,
    },
    rate,
    inFlightMax: capped ? Math.max(range.min, Math.round(cap)) : start.inFlightMax,
    reason,
    why: overload.fresh
      ? `${overloadText(policy, overload)}; ${trafficText(sample)}`
      : 'no fresh signal',
    terms: {
      z: overload.z,
      over,
      cap,
      observed,
      capBinds: +capBinds,
      rateBinds: +rateBinds,
      verified,
      drained: +drained,
      slope,
    },
  };
};

function isLatency(policy: Policy, name: string): boolean {
  return policy.signals[name]?.stat === 'latency';
}

/** No completion for this long under load, and the cap is not worth a thing: the rate-only form rules. */
const BLIND_MS = 10_000;

export const adaptiveLaw: Law = (policy, before, sample) => {
  const { traffic } = sample;
  const said = policy.control.law === 'adaptive' ? policy.control.completions : undefined;
  const none =
    (said ?? policy.limiter.completions) === 'none' || boundsOf(policy).inFlight === null;
  const blind = traffic.admittedRate > 0 && traffic.answers === 0;
  const silent = numberIn(before, 'silentMs', 0);
  const silentMs = !traffic.fresh ? silent : blind ? Math.min(3_600_000, silent + sample.dtMs) : 0;
  const rateOnly = none || silentMs >= BLIND_MS;
  const was = numberIn(before, 'rateOnly', rateOnly ? 1 : 0) === 1;
  // Each form keeps a memory of its own: a change of form starts from what is in force.
  const memory = was === rateOnly ? before : {};
  const result = (rateOnly ? adaptiveRateLaw : capLaw)(policy, memory, sample);
  return { ...result, memory: { ...result.memory, silentMs, rateOnly: rateOnly ? 1 : 0 } };
};
