/** Which levels of the breaker are passed now, and in what words. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { BreakerMemory, OutcomeCounts, TripCounts } from './breaker-types.js';
import { num, withUnit } from './reasons.js';
import { provenShare, type Trip, tripsOf } from './trips.js';
import type { Sample } from './types.js';

export interface Passed {
  trip: Trip;
  counts: TripCounts;
  why: string;
}

/** Readings further apart than this do not stand for the time between them. */
const APART_MS = 5_000;

/** Only fresh outcomes of the generation in force, and fresh readings, can pass a level. */
export function passedLevels(policy: Policy, memory: BreakerMemory, sample: Sample): Passed[] {
  const trips = tripsOf(policy);
  const passed: Passed[] = [];
  for (let i = 0; i < trips.length; i++) {
    const trip = trips[i]!;
    const counts = countsOf(sample.outcomes, i);
    if (trip.kind === 'level') {
      const aboveMs = memory.aboveMs?.[i] ?? -1;
      if (!isAbove(trip, sample) || aboveMs < trip.perMs) continue;
      passed.push({ trip, counts, why: levelText(policy, trip, sample, aboveMs) });
    } else if (isCounting(sample) && isPassed(trip, counts)) {
      passed.push({ trip, counts, why: countText(trip, counts) });
    }
  }
  return passed;
}

function isPassed(trip: Trip, { answers, matching, tick }: TripCounts): boolean {
  // Without a new failure in this tick everything has been judged before.
  if (tick === 0) return false;
  if (trip.kind !== 'ratio') return matching > trip.above;
  return answers >= trip.minAnswers && provenShare(matching, answers) > trip.above;
}

export function isCounting({ outcomes, inForce }: Sample): boolean {
  return outcomes.fresh && outcomes.generation === inForce.generation;
}

/** An entry of one plain level tells its counts without a list. */
export function countsOf(outcomes: OutcomeCounts, i: number): TripCounts {
  const listed = outcomes.trips?.[i];
  if (listed !== undefined) return listed;
  const { ok, failed, matching, windowMs, tick } = outcomes;
  if (i > 0) return { answers: 0, matching: 0, windowMs, tick: 0 };
  return { answers: ok + failed, matching, windowMs, tick: tick.matching };
}

/** ms for which each level has been passed by fresh readings; −1: it is not. */
export function timeAbove(
  policy: Policy,
  before: readonly number[] | undefined,
  sample: Sample,
): number[] | undefined {
  const trips = tripsOf(policy);
  if (!trips.some(({ kind }) => kind === 'level')) return undefined;
  const known = before?.length === trips.length ? before : [];
  return trips.map((trip, i) => {
    const was = known[i] ?? -1;
    if (trip.kind !== 'level') return -1;
    const { fresh = false, value = null, reason } = sample.signals[trip.on] ?? {};
    // Nothing new says nothing; a signal that is lost begins anew.
    if (!fresh || value === null) return reason === undefined || reason === 'thin' ? was : -1;
    if (!(value > trip.above)) return -1;
    return was < 0 ? 0 : was + Math.max(0, Math.min(APART_MS, sample.dtMs));
  });
}

/** Which level of another number is still passed: then good probes prove too little. */
export function stillAbove(policy: Policy, sample: Sample): string | null {
  const trip = tripsOf(policy).find((each) => each.kind === 'level' && isAbove(each, sample));
  if (trip === undefined) return null;
  const value = sample.signals[trip.on]?.value ?? 0;
  const above = withUnit(policy, trip.on, trip.above);
  return `${trip.on} is still ${withUnit(policy, trip.on, value)}, above ${above}`;
}

function isAbove(trip: Trip, sample: Sample): boolean {
  const estimate = sample.signals[trip.on];
  return estimate?.fresh === true && estimate.value !== null && estimate.value > trip.above;
}

function levelText(policy: Policy, trip: Trip, sample: Sample, aboveMs: number): string {
  const value = withUnit(policy, trip.on, sample.signals[trip.on]?.value ?? 0);
  const above = withUnit(policy, trip.on, trip.above);
  return `${trip.on} ${value}, above ${above} for ${num(aboveMs / 1000)} s`;
}

function countText({ signal, kind, above }: Trip, counts: TripCounts): string {
  const { answers, matching, windowMs } = counts;
  if (kind === 'run') return `${num(matching)} failures in a row, above ${num(above)}`;
  const within = `in ${num(windowMs / 1000)} s`;
  return `${num(matching)} ${badWord(signal)} of ${num(answers)} answers ${within}`;
}

function badWord(signal: Trip['signal']): string {
  switch (signal?.stat) {
    case 'timeoutRatio':
      return 'timeouts';
    case 'slowRatio':
      return `slower than ${num(signal.over)} ms`;
    case 'errors':
    case 'errorRatio':
      return signal.code === undefined ? 'failures' : `failures (${signal.code})`;
    default:
      return 'failures';
  }
}
