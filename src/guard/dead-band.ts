/** Guard `deadBand`: small changes are merged until they are worth an audit entry. Stage: guard. */
import { type Guard, passed } from './types.js';

export const deadBand: Guard = ({ policy, sample, proposal, now }) => {
  if (proposal.state !== sample.inForce.state || sample.inForce.gliding) {
    return passed('deadBand', proposal);
  }
  const band = policy.guards.deadBand;
  const small = (value: number, from: number) => Math.abs(value - from) < band * Math.abs(from);
  const rate = small(proposal.rate, now.rate) ? now.rate : proposal.rate;
  const cap = small(proposal.inFlightMax, now.inFlightMax) ? now.inFlightMax : proposal.inFlightMax;
  if (rate === proposal.rate && cap === proposal.inFlightMax) return passed('deadBand', proposal);
  const sentence = `a change below ${band * 100} % waits for more`;
  return {
    proposal: { ...proposal, rate, inFlightMax: cap },
    verdict: { guard: 'deadBand', effect: 'held', sentence },
  };
};
