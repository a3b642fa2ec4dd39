/** Guard `bounds`: finite numbers within the policy's bounds, rounded as they will be stored. Always last. Stage: guard. */
import { boundsOf, clamp } from '../decide/bounds.js';
import type { Guard } from './types.js';

export const bounds: Guard = ({ policy, sample, proposal, now }) => {
  // A person's value may lie below the minimum (a pin of 0): a trip under it must bring it back as it was.
  if (sample.inForce.held !== 'none') return null;
  const limits = boundsOf(policy);
  // What lies below the minimum (a slow start, a pin let go) comes up to it, but not blindly.
  const stopped = proposal.state === 'open' || proposal.state === 'half-open';
  const lifts = sample.traffic.fresh && !stopped;
  const lift = (min: number, from: number) => (lifts ? min : Math.min(min, from));
  const leastClosed = lift(limits.rate.min, now.rate);
  const least =
    proposal.state === 'recovering' ? Math.min(limits.probeRate, leastClosed) : leastClosed;
  // What nothing moves stays to the digit: rounding alone is no change.
  const rounded =
    proposal.rate === now.rate ? now.rate : roundRate(finite(proposal.rate, now.rate));
  const rate = clamp(rounded, least, limits.rate.max);
  const wanted = Math.round(finite(proposal.inFlightMax, now.inFlightMax));
  const cap =
    limits.inFlight === null
      ? wanted
      : clamp(wanted, lift(limits.inFlight.min, now.inFlightMax), limits.inFlight.max);
  if (rate === proposal.rate && cap === proposal.inFlightMax) return null;
  const next = { ...proposal, rate, inFlightMax: cap };
  const lowered = rate < rounded || cap < wanted;
  const raised = rate > rounded || cap > wanted;
  if (!lowered && !raised) return { proposal: next };
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
