/** What every law takes and gives, and what they share. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { LoopTuning } from '../tune/loop-fit.js';
import type { Reason } from './reasons.js';
import type { Over } from './told-types.js';
import type { LawMemory, Sample } from './types.js';

export interface LawResult {
  memory: LawMemory;
  rate: number;
  inFlightMax: number;
  reason: Reason;
  why: string;
  over?: Over | undefined;
  terms: Record<string, number>;
}

/** One law a file. A law wants numbers within no bounds: guards see to those. `loop`: what of it follows its own loop. */
export type Law = (
  policy: Policy,
  memory: LawMemory,
  sample: Sample,
  loop?: LoopTuning,
) => LawResult;

/** What a law starts from: what is in force, glide included, so that taking over moves nothing (bumpless). */
export function startingPoint(sample: Sample): { rate: number; inFlightMax: number } {
  const { inForce } = sample;
  return inForce.gliding
    ? { rate: inForce.rate, inFlightMax: inForce.inFlightMax }
    : { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };
}

/** A number of a law's memory, or what it starts from. */
export function numberIn(memory: LawMemory, key: string, otherwise: number): number {
  const value = memory[key];
  return typeof value === 'number' ? value : otherwise;
}

/** A list of a law's memory; empty to begin with. */
export function listIn(memory: LawMemory, key: string): readonly number[] {
  const value = memory[key];
  return Array.isArray(value) ? value : [];
}
