/** What a guard takes and gives. Stage: guard. */
import type { LimiterNumbers } from '../decide/breaker-types.js';
import type { GuardMemory, GuardVerdict, ProofMemory, Proposal, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

export interface GuardInput {
  policy: Policy;
  memory: GuardMemory;
  /** What proved good; undefined: nobody watches over it. */
  proof?: ProofMemory | undefined;
  sample: Sample;
  /** What is in force and would stay, glide included. */
  now: LimiterNumbers;
  proposal: Proposal;
}

/**
 * A guard may lower, hold or refuse a proposal, never raise it above the higher of proposal and what is in force.
 * Null: it passes as it is; without a verdict: but for how it is written.
 */
export type Guard = (input: GuardInput) => { proposal: Proposal; verdict?: GuardVerdict } | null;

/** Puts back what the proposal would raise; what it lowers stays lowered. */
export function withoutRaises(input: GuardInput): Proposal {
  const { proposal, now } = input;
  return {
    ...proposal,
    rate: Math.min(proposal.rate, now.rate),
    inFlightMax: Math.min(proposal.inFlightMax, now.inFlightMax),
  };
}

export function raises(input: GuardInput): boolean {
  const { proposal, now } = input;
  return proposal.rate > now.rate || proposal.inFlightMax > now.inFlightMax;
}
