/** Guard `bounds`: finite numbers within the policy's bounds, rounded as they will be stored. Always last. Stage: guard. */
import { boundsOf, clamp } from '../decide/bounds.js';
import { type Guard, passed } from './types.js';

export const bounds: Guard = ({ policy, sample, proposal, now }) => {
  // A person's value may lie below the minimum (a pin of 0): a trip under it must bring it back as it was.
  if (sample.inForce.held !== 'none') return passed('bounds', proposal);
  const limits = boundsOf(policy);
  // A slow start climbs through what lies below the minimum.
  const least =
    proposal.state === 'recovering' ? Math.min(limits.probeRate, limits.rate.min) : limits.rate.min;
  const rate = clamp(roundRate(finite(proposal.rate, now.rate)), least, limits.rate.max);
  const wanted = Math.round(finite(proposal.inFlightMax, now.inFlightMax));
  const cap =
    limits.inFlight === null ? wanted : clamp(wanted, limits.inFlight.min, limits.inFlight.max);
  const lowered = rate < roundRate(proposal.rate) || cap < wanted;
  const raised = rate > roundRate(proposal.rate) || cap > wanted;
  const next = { ...proposal, rate, inFlightMax: cap };
  if (!lowered && !raised) return passed('bounds', next);
  const sentence = `rate kept in ${limits.rate.min} … ${limits.rate.max}/s${
    limits.inFlight === null ? '' : `, cap in ${limits.inFlight.min} … ${limits.inFlight.max}`
  }`;
  return {
    proposal: next,
    verdict: { guard: 'bounds', effect: raised ? 'held' : 'lowered', sentence },
  };
};

function finite(value: number, otherwise: number): number {
  return Number.isFinite(value) ? value : otherwise;
}

/** Three significant digits: a rate of 203.71/s is no better than 204/s, and reads worse. */
function roundRate(rate: number): number {
  if (!Number.isFinite(rate) || rate <= 0) return 0;
  return rate >= 1000 ? Math.round(rate) : Number(rate.toPrecision(3));
}
