/** Guard `drift`: how far raises may carry rate and cap within an hour above what they have been. Stage: guard. */
import type { LimiterNumbers } from '../decide/breaker-types.js';
import type { GuardMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import type { Guard } from './types.js';

const HOUR_MS = 3_600_000;

/**
 * From where it is counted: at least what is in force, and what has been, which falls back slowly. A way back up after
 * a cut is so no drift. It follows a climb at half the pace: half at once and half over the hour, so that no hour sees
 * more than `driftPerHour`.
 */
export function driftMemory(
  policy: Policy,
  memory: GuardMemory,
  sample: Sample,
): Pick<GuardMemory, 'driftRate' | 'driftCap'> | null {
  const most = policy.guards.driftPerHour;
  if (most === undefined) return null;
  const { rate, inFlightMax } = sample.inForce.target;
  const paceOf = most ** (Math.max(0, sample.dtMs) / 2 / HOUR_MS);
  const follow = (from: number | undefined, value: number) => {
    if (from === undefined || from <= 0) return value;
    return value > from ? Math.min(value, from * paceOf) : Math.max(value, from / paceOf);
  };
  return {
    driftRate: follow(memory.driftRate, rate),
    driftCap: follow(memory.driftCap, inFlightMax),
  };
}

/** A cut is never held; neither is a value that lies above already. */
export const drift: Guard = (input) => {
  const { policy, memory, proposal, now } = input;
  const most = policy.guards.driftPerHour;
  if (most === undefined) return null;
  const ceiling = (from: number | undefined, value: number) =>
    from === undefined ? Number.POSITIVE_INFINITY : Math.max(value, from * Math.sqrt(most));
  const limits: LimiterNumbers = {
    rate: ceiling(memory.driftRate, now.rate),
    inFlightMax: Math.floor(ceiling(memory.driftCap, now.inFlightMax)),
  };
  const rate = Math.min(proposal.rate, limits.rate);
  const inFlightMax = Math.min(proposal.inFlightMax, limits.inFlightMax);
  if (rate === proposal.rate && inFlightMax === proposal.inFlightMax) {
    return null;
  }
  const sentence = `raises of an hour are at most × ${most}`;
  return {
    proposal: { ...proposal, rate, inFlightMax },
    verdict: { guard: 'drift', effect: 'lowered', sentence },
  };
};
