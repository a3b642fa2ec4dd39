/** Guard `staleness`: nothing that is not fresh raises; missing signals hold, glide or are ignored. Stage: guard. */
import { boundsOf, clamp } from '../decide/bounds.js';
import { type MissingSignal, missingSignals } from '../decide/missing.js';
import type { GuardMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type Guard, type GuardInput, raises, withoutRaises } from './types.js';

export const staleness: Guard = (input) => {
  const { sample, proposal, now } = input;
  const { missing, all } = missingSignals(input.policy, sample);
  const lowered = glide(input, missing);
  if (lowered !== null && (lowered.rate < now.rate || lowered.inFlightMax < now.inFlightMax)) {
    const sentence = `${namesOf(gliding(missing))} missing: toward the safe values`;
    return {
      proposal: { ...proposal, ...lowered, reason: 'glide_missing', why: sentence },
      verdict: { guard: 'staleness', effect: 'lowered', sentence },
    };
  }
  if (!raises(input)) return null;
  // Where none of them is known there is nothing left to decide by, whatever may be ignored.
  const blocking = all ? missing : missing.filter(({ onMissing }) => onMissing !== 'ignore');
  if (sample.traffic.fresh && blocking.length === 0) return null;
  const blocked = blocking.length > 0;
  const what = blocked ? `${namesOf(blocking)} missing` : 'nothing fresh';
  return {
    proposal: { ...withoutRaises(input), reason: blocked ? 'signal_missing' : 'no_evidence' },
    verdict: { guard: 'staleness', effect: 'held', sentence: `${what}: no raise` },
  };
};

/** ms for which a signal that glides has been missing. */
export function missingFor(policy: Policy, memory: GuardMemory, sample: Sample): number {
  const glides = gliding(missingSignals(policy, sample).missing).length > 0;
  return glides ? memory.missingMs + Math.max(0, sample.dtMs) : 0;
}

/** Toward the safe values at the pace of a lost autopilot, but never up: what is unknown raises nothing. */
function glide({ policy, sample, proposal, memory, now }: GuardInput, missing: MissingSignal[]) {
  const { after, over, rate: lostRate, inFlight } = policy.whenLost;
  if (sample.inForce.held !== 'none' || memory.missingMs <= after) return null;
  if (gliding(missing).length === 0) return null;
  const bounds = boundsOf(policy);
  const safeRate = lostRate ?? policy.limiter.rate;
  const safeCap = inFlight ?? policy.limiter.inFlightMax ?? now.inFlightMax;
  const left = after + over - memory.missingMs + sample.dtMs;
  const part = left <= sample.dtMs ? 1 : clamp(sample.dtMs / left, 0, 1);
  const toward = (from: number, to: number) => (to < from ? from + (to - from) * part : from);
  return {
    rate: Math.min(proposal.rate, Math.max(bounds.rate.min, toward(now.rate, safeRate))),
    inFlightMax: Math.min(proposal.inFlightMax, Math.floor(toward(now.inFlightMax, safeCap))),
  };
}

function gliding(missing: readonly MissingSignal[]): MissingSignal[] {
  return missing.filter(({ onMissing }) => onMissing === 'glide');
}

function namesOf(missing: readonly MissingSignal[]): string {
  return missing.map(({ name }) => name).join(', ');
}
