/** Guards on the pace of raises: `slew` (factor of one raise), `cooldown` (time between two), `budget` and `fleet` (changes a minute). Stage: guard. */
import { type Guard, raises, withoutRaises } from './types.js';

/** One raise multiplies by at most `raiseMax`; a cap may always grow by one. */
export const slew: Guard = (input) => {
  const { policy, proposal, now } = input;
  const most = policy.guards.raiseMax;
  const rate = now.rate > 0 ? Math.min(proposal.rate, now.rate * most) : proposal.rate;
  const cap =
    now.inFlightMax > 0
      ? Math.min(
          proposal.inFlightMax,
          Math.max(now.inFlightMax + 1, Math.floor(now.inFlightMax * most)),
        )
      : proposal.inFlightMax;
  if (rate === proposal.rate && cap === proposal.inFlightMax) return null;
  const sentence = `a raise is at most × ${most}`;
  return {
    proposal: { ...proposal, rate, inFlightMax: cap },
    verdict: { guard: 'slew', effect: 'lowered', sentence },
  };
};

export const cooldown: Guard = (input) => {
  const { policy, memory } = input;
  if (!raises(input) || memory.sinceRaiseMs >= policy.guards.cooldown) {
    return null;
  }
  const sentence = `last raise ${Math.round(memory.sinceRaiseMs)} ms ago, cool-down ${policy.guards.cooldown} ms`;
  return {
    proposal: withoutRaises(input),
    verdict: { guard: 'cooldown', effect: 'held', sentence },
  };
};

/** Cuts count but never wait. */
export const budget: Guard = (input) => {
  const { policy, memory } = input;
  if (!raises(input) || memory.budget >= 1) return null;
  const sentence = `more than ${policy.guards.changesPerMinute} changes a minute: raises wait`;
  return { proposal: withoutRaises(input), verdict: { guard: 'budget', effect: 'held', sentence } };
};

/** The whole fleet's budget: who leads asked for it, and was told to wait. */
export const fleet: Guard = (input) => {
  const { sample } = input;
  if (sample.raisesWait !== true || !raises(input)) return null;
  const sentence = 'the fleet has raised as much as it may for now: raises wait';
  return { proposal: withoutRaises(input), verdict: { guard: 'fleet', effect: 'held', sentence } };
};
