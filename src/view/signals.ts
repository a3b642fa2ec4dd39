/** Each signal of a policy as plain data: reading, age, verdict, what follows for the law, and why. Pure. Stage: cli, api. */
import { tripsOf } from '../decide/trips.js';
import type { Sample, SignalEstimate } from '../decide/types.js';
import { waitsFor } from '../decide/waiting.js';
import type { Policy } from '../policy/schema.js';
import { type SignalUnit, unitOf } from './signal-unit.js';

/** `waiting`: known and sound, but nothing new since the last tick. */
export type SignalVerdict = 'fresh' | 'waiting' | 'thin' | 'stale' | 'missing';

export interface SignalView {
  signal: string;
  source: string;
  stat: string;
  unit: SignalUnit;
  value: number | null;
  ageMs: number;
  /** Observations behind the value. */
  count: number;
  setpoint: number | null;
  /** On which side of the setpoint it is well. */
  side: 'below' | 'above' | null;
  /** Above this it opens the breaker. */
  tripsAbove: number | null;
  verdict: SignalVerdict;
  /** What it lets the law do now. */
  follows: string;
  /** Reason code when it is not fresh. */
  reason: string | null;
  /** What the number is made of, or what the source said. */
  detail: string | null;
}

/** Reasons that say "nothing happens", which is no fault of the signal. */
const QUIET = new Set<string | undefined>(['no_traffic', 'thin']);

export function signalViews(
  policy: Policy,
  sample: Sample,
  details: Readonly<Record<string, string>>,
): SignalView[] {
  return Object.entries(policy.signals).map(([name, signal]): SignalView => {
    const estimate = sample.signals[name] ?? NONE;
    const objective = policy.objective[name];
    const trip = tripsOf(policy).find(({ on }) => on === name);
    return {
      signal: name,
      source: signal.source,
      stat: signal.stat,
      unit: unitOf(signal),
      value: estimate.value,
      ageMs: estimate.ageMs,
      count: estimate.count,
      setpoint: objective?.below ?? objective?.above ?? null,
      side: objective === undefined ? null : objective.below !== undefined ? 'below' : 'above',
      tripsAbove: trip?.above ?? null,
      verdict: verdictOf(estimate),
      follows: followsOf(policy, name, estimate, sample),
      reason: estimate.reason ?? null,
      detail: details[name] ?? null,
    };
  });
}

const NONE: SignalEstimate = {
  value: null,
  fresh: false,
  ageMs: 0,
  count: 0,
  reason: 'not_started',
};

function verdictOf({ fresh, reason, value }: SignalEstimate): SignalVerdict {
  if (fresh) return 'fresh';
  if (reason === 'thin' || reason === 'stale') return reason;
  return reason === undefined && value !== null ? 'waiting' : 'missing';
}

/** Does the policy decide by it, and can it not? Then somebody should look. */
export function needsCare(view: SignalView): boolean {
  const wanted = view.setpoint !== null || view.tripsAbove !== null;
  if (!wanted || QUIET.has(view.reason ?? undefined)) return false;
  return view.verdict === 'missing' || view.verdict === 'stale';
}

function followsOf(policy: Policy, name: string, estimate: SignalEstimate, sample: Sample): string {
  const trips = tripsOf(policy).filter(({ on }) => on === name);
  const objective = policy.objective[name];
  const parts: string[] = [];
  if (objective !== undefined) parts.push(lawOf(policy, name, objective, estimate, sample));
  if (trips.length > 0) {
    const above = estimate.value !== null && trips.some((trip) => estimate.value! > trip.above);
    parts.push(!estimate.fresh ? 'no trip' : above ? 'may trip' : 'does not trip');
  }
  return parts.length === 0 ? 'shown only' : parts.join(', ');
}

function lawOf(
  policy: Policy,
  name: string,
  objective: Policy['objective'][string],
  estimate: SignalEstimate,
  sample: Sample,
): string {
  const { value, fresh, reason } = estimate;
  if (fresh && value !== null) {
    const { below = Number.POSITIVE_INFINITY, above = Number.NEGATIVE_INFINITY } = objective;
    if (value <= below && value >= above) return 'may raise';
    const waits = waitsFor(policy, name, objective, sample);
    if (waits === null) return 'cuts';
    if (waits.what === 'sustain')
      return `holds: missed for ${seconds(waits.missedMs)} of ${seconds(waits.sustainMs)}`;
    if (waits.what === 'mix') return 'holds: slower routes are asked for';
    return `holds: waits for ${waits.witnesses.map((one) => one.name).join(' or ')}`;
  }
  if (reason === undefined || QUIET.has(reason)) return 'holds';
  const onMissing = objective.onMissing ?? policy.onMissing;
  if (onMissing === 'ignore') return 'left out';
  return onMissing === 'hold' ? 'holds' : `holds, glides after ${seconds(policy.whenLost.after)}`;
}

const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
