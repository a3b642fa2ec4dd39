/** Law `adaptive`: moves the in-flight cap, and beside it the rate as a ceiling over what was verified. Stage: decide. */
import { boundsOf, clamp } from './bounds.js';
import { type Law, startingPoint } from './law.js';
import { overloadOf } from './overload.js';
import { overloadText, type Reason, trafficText } from './reasons.js';

export const TUNING = {
  /** Aim for this share of the setpoint: the room that noise and the next burst need. */
  aim: 0.8,
  /** Exponent of a cut, and the most one tick cuts. */
  cutPower: 0.6,
  cutMost: 0.6,
  /** A cap that binds and has all its room grows by this share a second. */
  growPerSecond: 0.25,
  /** A cap that does not bind stands at least this far above what is seen. */
  idleRoom: 3,
  /** The rate ceiling over verified good throughput. */
  rateRoom: 2,
} as const;

export const adaptiveLaw: Law = (policy, before, sample) => {
  const bounds = boundsOf(policy);
  const range = bounds.inFlight ?? { min: 1, max: Number.MAX_SAFE_INTEGER };
  const start = startingPoint(sample);
  const overload = overloadOf(policy, sample);
  const { traffic } = sample;
  const capped = bounds.inFlight !== null;
  let cap = clamp(before.cap ?? (start.inFlightMax || range.max), range.min, range.max);
  // A person, a policy or a guard may have moved what is in force: follow it, keep only what rounding lost.
  if (start.inFlightMax > 0 && (cap < 0.8 * start.inFlightMax || cap > 1.25 * start.inFlightMax)) {
    cap = start.inFlightMax;
  }
  let rate = start.rate;
  const observed = traffic.inFlight ?? 0;
  const seconds = Math.min(traffic.intervalMs || 1000, 15_000) / 1000;
  const over = overload.z - Math.log(TUNING.aim);
  let reason: Reason = 'steady';

  const capBinds = traffic.deniedByCap > 0 || observed > 0.7 * cap;
  const rateBinds = traffic.deniedByRate > 0;
  if (!overload.fresh || !traffic.fresh) reason = 'no_evidence';
  else if (over > 0) {
    const factor = Math.max(TUNING.cutMost, Math.exp(-TUNING.cutPower * over));
    cap = Math.min(cap, 1.05 * observed) * factor;
    reason = 'law_cut';
    rate = Math.min(rate, Math.max(bounds.rate.min, TUNING.rateRoom * traffic.okRate));
  } else {
    if (capBinds) {
      cap *= 1 + TUNING.growPerSecond * seconds * -Math.expm1(over);
      reason = 'law_raise';
    } else if (cap < TUNING.idleRoom * observed) {
      cap = TUNING.idleRoom * observed;
      reason = 'law_raise';
    }
    if (rateBinds) {
      rate = Math.max(rate, TUNING.rateRoom * traffic.okRate);
      reason = 'law_raise';
    }
  }
  cap = clamp(cap, range.min, range.max);
  return {
    memory: { cap },
    rate,
    inFlightMax: capped ? Math.max(range.min, Math.round(cap)) : start.inFlightMax,
    reason,
    why: overload.fresh
      ? `${overloadText(policy, overload)}; ${trafficText(sample)}`
      : 'no fresh signal',
    terms: { z: overload.z, over, cap, observed, capBinds: +capBinds, rateBinds: +rateBinds },
  };
};
