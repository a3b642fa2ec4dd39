/** Law `pi`: proportional–integral control of the logarithm of the limits. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf, clamp } from './bounds.js';
import { evidenceOf } from './evidence.js';
import { exactIn, keepExact, unmoved } from './exact.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { type Reason, seenOf, trafficText } from './reasons.js';

type PiControl = Extract<Policy['control'], { law: 'pi' }>;

/** No error counts for more than this (log), and no step goes further than these. */
const ERROR_MOST = 1;
/** `ki` times the age of what is seen is at most this: an integral that runs ahead of its data swings from bound to bound. */
const AHEAD_MOST = 0.5;
const CUT_MOST = 0.5;
const RAISE_MOST = 0.3;

/**
 * With e = −z, the log of setpoint ÷ estimate, positive where there is room:
 *
 *   Δ ln u = kp · (e − e₁) + ki · e · seconds        u: the rate, and the cap beside it
 *   ki       at most 0.5 ÷ seconds that a sample is old at its end
 *
 * The velocity form (Åström and Hägglund, "PID Controllers", 1995, §3.5): what is in force is the integral, so that
 * nothing winds up at a bound, under a hold or while the breaker is open, and taking over moves nothing. A raise
 * needs a limit that binds. It acts on fresh samples alone; the first after a gap has no e₁, so no proportional part.
 */
export const piLaw: Law = (policy, before, sample) => {
  const control = policy.control as PiControl;
  const { rate: rateBounds, inFlight } = boundsOf(policy);
  const start = startingPoint(sample);
  const seen = evidenceOf(policy, sample, 0);
  const error = clamp(-seen.z, -ERROR_MOST, ERROR_MOST);
  const last = numberIn(before, 'error', error);
  const gapMs = numberIn(before, 'gapMs', 0) + Math.max(0, sample.dtMs);
  const known = gapMs <= 3 * Math.max(sample.traffic.intervalMs, sample.dtMs);
  const oldS = (Math.max(0, sample.traffic.ageMs) + Math.max(0, sample.traffic.intervalMs)) / 1000;
  const ki = Math.min(control.ki, AHEAD_MOST / Math.max(oldS, 1e-3));
  const wanted = control.kp * (known ? error - last : 0) + ki * error * seen.seconds;
  const change = seen.fresh ? clamp(wanted, -CUT_MOST, RAISE_MOST) : 0;
  const raising = change > 0;
  const factor = Math.exp(change);
  const exact = exactIn(policy, before, sample, start);

  const moves = (binds: boolean) => change < 0 || (raising && error > 0 && binds);
  const next = seen.fresh ? unmoved(exact, start) : exact;
  // A cut takes no raise along that was pending: what is worse must never end higher.
  const from = raising ? exact : next;
  if (moves(seen.rateBinds)) next.rate = within(from.rate * factor, start.rate, rateBounds);
  if (moves(seen.capBinds)) {
    next.inFlightMax = within(from.inFlightMax * factor, start.inFlightMax, inFlight);
  }
  const { rate, inFlightMax: cap } = seen.fresh ? next : start;
  // A whole place away: half of one would come and go with the noise.
  const whole = Math.abs(cap - start.inFlightMax) < 1 ? start.inFlightMax : Math.round(cap);
  const inFlightMax = start.inFlightMax === 0 ? 0 : Math.max(1, whole);

  let reason: Reason = 'steady';
  if (!seen.fresh) reason = 'no_evidence';
  else if (rate < start.rate || inFlightMax < start.inFlightMax) reason = 'law_cut';
  else if (rate > start.rate || inFlightMax > start.inFlightMax) reason = 'law_raise';
  else if (raising && !seen.rateBinds && !seen.capBinds) reason = 'idle';
  return {
    memory: {
      error: seen.fresh ? error : last,
      gapMs: seen.fresh ? 0 : gapMs,
      ...keepExact(next, sample, start),
    },
    rate,
    inFlightMax,
    reason,
    ...seenOf(policy, seen.overload, seen.fresh ? trafficText(sample) : ''),
    terms: {
      z: seen.z,
      error,
      last,
      ki,
      change,
      rateBinds: +seen.rateBinds,
      capBinds: +seen.capBinds,
    },
  };
};

/** Within the bounds; what lies outside them already is not brought in by the law. */
function within(value: number, from: number, range: { min: number; max: number } | null): number {
  if (range === null) return from;
  return clamp(value, Math.min(from, range.min), Math.max(from, range.max));
}
