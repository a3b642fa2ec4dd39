/** Why a signal past its setpoint does not count yet: too short a time, no second witness, or what is asked for. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { Sample } from './types.js';

export type WaitsFor =
  | { what: 'sustain'; missedMs: number; sustainMs: number }
  /** The signals that could confirm, with the level that each would have to pass. */
  | { what: 'witness'; witnesses: Witness[] }
  | { what: 'mix'; slowdown: number };

interface Witness {
  name: string;
  side: 'above' | 'below';
  level: number;
}

/** Slower routes than usual are asked for, from this factor of the usual time on. */
const SHIFTED = 1.1;
/** Times its own usual time that a route may take before it counts as slower. */
const OWN_TIME = 1.25;

type Objective = Policy['objective'][string];

/** What a signal near or past its setpoint waits for before it may cut, or null: it counts. */
export function waitsFor(
  policy: Policy,
  name: string,
  objective: Objective,
  sample: Sample,
): WaitsFor | null {
  const { missedMs = 0 } = sample.signals[name]!;
  if (missedMs < objective.sustain) {
    return { what: 'sustain', missedMs, sustainMs: objective.sustain };
  }
  if (objective.confirm !== undefined && !confirmed(objective.confirm, sample)) {
    return { what: 'witness', witnesses: witnessesOf(objective.confirm) };
  }
  const slowdown = slowdownOf(policy, name, sample);
  return slowdown !== null && slowdown <= OWN_TIME ? { what: 'mix', slowdown } : null;
}

/**
 * The index of a response time, no higher than its routes are slower than usual: where slower ones are asked for, only
 * what is beyond each one's own time is congestion.
 */
export function beyondMix(policy: Policy, name: string, index: number, sample: Sample): number {
  const slowdown = slowdownOf(policy, name, sample);
  return slowdown === null ? index : Math.min(index, Math.log(slowdown / OWN_TIME));
}

/** How much slower than usual each route is; null where the mix is the usual one, or not known. */
function slowdownOf(policy: Policy, name: string, sample: Sample): number | null {
  const { mix } = sample.traffic;
  if (mix === undefined || mix.shift < SHIFTED) return null;
  return policy.signals[name]?.stat === 'latency' ? mix.slowdown : null;
}

/** One witness is enough. One that is missing, stale or thin confirms nothing. */
function confirmed(confirm: NonNullable<Objective['confirm']>, sample: Sample): boolean {
  for (const { name, side, level } of witnessesOf(confirm)) {
    const seen = sample.signals[name];
    if (seen === undefined || seen.value === null || seen.reason !== undefined) continue;
    if (side === 'above' ? seen.value > level : seen.value < level) return true;
  }
  return false;
}

function witnessesOf(confirm: NonNullable<Objective['confirm']>): Witness[] {
  const witnesses: Witness[] = [];
  for (const [name, { above, below }] of Object.entries(confirm)) {
    if (above !== undefined) witnesses.push({ name, side: 'above', level: above });
    else if (below !== undefined) witnesses.push({ name, side: 'below', level: below });
  }
  return witnesses;
}
