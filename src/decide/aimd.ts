/** Law `aimd`: additive increase while a limit binds, multiplicative decrease on overload. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf, clamp } from './bounds.js';
import { evidenceOf } from './evidence.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { overloadText, type Reason, trafficText } from './reasons.js';

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
  const part = clamp(numberIn(before, 'part', 0), 0, 1);
  let { rate, inFlightMax } = start;
  let cap = inFlightMax + part;
  let { sinceCutMs } = seen;
  let reason: Reason = 'steady';

  if (!seen.fresh) reason = 'no_evidence';
  else if (seen.z > 0 && seen.drained) {
    rate = Math.max(Math.min(rate, rateBounds.min), rate * control.down);
    if (inFlight) cap = Math.max(Math.min(cap, inFlight.min), cap * control.down);
    if (rate < start.rate || cap < start.inFlightMax) {
      sinceCutMs = 0;
      reason = 'law_cut';
    }
  } else if (seen.z < 0) {
    reason = 'idle';
    if (seen.rateBinds) rate = Math.min(Math.max(rate, rateBounds.max), rate + add * seen.seconds);
    if (seen.capBinds && inFlight) {
      cap = Math.min(Math.max(cap, inFlight.max), cap + addInFlight * seen.seconds);
    }
    if (rate > start.rate || cap > start.inFlightMax + part) reason = 'law_raise';
  }
  inFlightMax = start.inFlightMax === 0 ? 0 : Math.max(1, Math.floor(cap + 1e-9));
  return {
    memory: { sinceCutMs: Math.min(sinceCutMs, LONG_MS), part: Math.max(0, cap - inFlightMax) },
    rate,
    inFlightMax,
    reason,
    why: seen.fresh
      ? `${overloadText(policy, seen.overload)}; ${trafficText(sample)}`
      : overloadText(policy, seen.overload),
    terms: {
      z: seen.z,
      add,
      drained: +seen.drained,
      rateBinds: +seen.rateBinds,
      capBinds: +seen.capBinds,
    },
  };
};
