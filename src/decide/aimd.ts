/** Law `aimd`: additive increase while a limit binds, multiplicative decrease on overload. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf } from './bounds.js';
import { evidenceOf } from './evidence.js';
import { exactIn, keepExact, unmoved } from './exact.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { type Reason, seenOf, trafficText } from './reasons.js';

type AimdControl = Extract<Policy['control'], { law: 'aimd' }>;

/** Without `add`: this share of the policy's own number a second. */
const ADD_SHARE = 0.02;
const LONG_MS = 3_600_000;

/**
 *   z > 0    rate ← rate · down, cap ← cap · down; again once the answers are of requests admitted since
 *   z < 0    rate ← rate + add · seconds if the rate binds; cap ← cap + addInFlight · seconds if the cap binds
 *   else     nothing moves: nothing is learnt from idleness
 *
 * Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance" (1989): of linear
 * rules the one that converges to a fair share. It saws between the knee and `down` times it.
 */
export const aimdLaw: Law = (policy, before, sample) => {
  const control = policy.control as AimdControl;
  const { rate: rateBounds, inFlight } = boundsOf(policy);
  const start = startingPoint(sample);
  const seen = evidenceOf(policy, sample, numberIn(before, 'sinceCutMs', LONG_MS));
  const add = control.add ?? ADD_SHARE * policy.limiter.rate;
  const addInFlight = control.addInFlight ?? ADD_SHARE * (policy.limiter.inFlightMax ?? 0);
  const exact = exactIn(policy, before, sample, start);
  let next = seen.fresh ? unmoved(exact, start) : exact;
  let { sinceCutMs } = seen;
  let reason: Reason = 'steady';

  if (!seen.fresh) reason = 'no_evidence';
  else if (seen.z > 0 && seen.drained) {
    const rate = Math.max(Math.min(start.rate, rateBounds.min), start.rate * control.down);
    const least = Math.min(start.inFlightMax, inFlight?.min ?? start.inFlightMax);
    next = { rate, inFlightMax: Math.max(least, start.inFlightMax * control.down) };
    if (rate < start.rate || next.inFlightMax < start.inFlightMax) {
      sinceCutMs = 0;
      reason = 'law_cut';
    }
  } else if (seen.z < 0) {
    reason = 'idle';
    const raised = (value: number, by: number, max: number) =>
      Math.min(Math.max(value, max), value + by * seen.seconds);
    if (seen.rateBinds) next.rate = raised(exact.rate, add, rateBounds.max);
    if (seen.capBinds && inFlight) {
      next.inFlightMax = raised(exact.inFlightMax, addInFlight, inFlight.max);
    }
    if (next.rate > exact.rate || next.inFlightMax > exact.inFlightMax) reason = 'law_raise';
  }
  const { rate, inFlightMax: cap } = seen.fresh ? next : start;
  const inFlightMax = start.inFlightMax === 0 ? 0 : Math.max(1, Math.floor(cap + 1e-9));
  return {
    memory: {
      sinceCutMs: Math.min(sinceCutMs, LONG_MS),
      ...keepExact(next, sample, start),
    },
    rate,
    inFlightMax,
    reason,
    ...seenOf(policy, seen.overload, seen.fresh ? trafficText(sample) : ''),
    terms: {
      z: seen.z,
      add,
      drained: +seen.drained,
      rateBinds: +seen.rateBinds,
      capBinds: +seen.capBinds,
    },
  };
};
