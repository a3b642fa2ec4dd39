/** Guard `hold`: while a person froze or pinned the limiter, the law changes nothing. Stage: guard. */
import type { Guard } from './types.js';

/** A trip still goes through and comes back to the held value, unless the breaker is held too. */
export const hold: Guard = ({ sample, proposal, now }) => {
  const { inForce } = sample;
  if (inForce.held === 'none') return null;
  if (proposal.cause === 'breaker' && !inForce.holdBreaker) return null;
  const same =
    proposal.rate === now.rate &&
    proposal.inFlightMax === now.inFlightMax &&
    proposal.state === inForce.state;
  if (same) return null;
  const by = inForce.bySchedule === true ? 'the schedule' : 'a person';
  const sentence = `${inForce.held} by ${by}: ${proposal.reason} is not applied`;
  return {
    proposal: { ...proposal, ...now, state: inForce.state, reason: 'steady' },
    verdict: { guard: 'hold', effect: 'refused', sentence },
  };
};
