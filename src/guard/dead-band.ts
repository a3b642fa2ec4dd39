/** Guard `deadBand`: small changes are merged until they are worth an audit entry. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import type { Guard } from './types.js';

export const deadBand: Guard = ({ policy, sample, proposal, now }) => {
  if (proposal.state !== sample.inForce.state || sample.inForce.gliding) {
    return null;
  }
  const band = policy.guards.deadBand;
  const bounds = boundsOf(policy);
  // The last step onto a bound is worth one, however small: the floor is the floor, exactly.
  const merged = (value: number, from: number, range: { min: number; max: number } | null) => {
    if (Math.abs(value - from) >= band * Math.abs(from)) return value;
    return range !== null && (value === range.min || value === range.max) ? value : from;
  };
  const rate = merged(proposal.rate, now.rate, bounds.rate);
  const cap = merged(proposal.inFlightMax, now.inFlightMax, bounds.inFlight);
  if (rate === proposal.rate && cap === proposal.inFlightMax) return null;
  const sentence = `a change below ${band * 100} % waits for more`;
  return {
    proposal: { ...proposal, rate, inFlightMax: cap },
    verdict: { guard: 'deadBand', effect: 'held', sentence },
  };
};
