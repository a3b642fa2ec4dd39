/** A limiter's share of its downstream: the most that law and guards may ask for, and the sentence that says so. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import { num, sentence } from '../decide/reasons.js';
import type { Decision, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/** The policy with its share as the upper bound of the rate; never below the lower one. */
export function withinShare(policy: Policy, sample: Sample): Policy {
  if (sample.group === undefined) return policy;
  const { rate } = boundsOf(policy);
  const max = Math.max(rate.min, Math.min(rate.max, sample.group.share));
  if (max === rate.max) return policy;
  return { ...policy, bounds: { ...policy.bounds, rate: { min: rate.min, max } } };
}

/** A rate that came down to its share says that it did, and of what. */
export function sayShare(within: Policy, sample: Sample, decision: Decision): Decision {
  const { group, inForce } = sample;
  if (group === undefined) return decision;
  const { max } = boundsOf(within).rate;
  const lowered = decision.change && decision.rate < inForce.target.rate && decision.rate === max;
  if (!lowered || decision.cause === 'breaker') return decision;
  const why = `its share of ${group.downstream} is ${num(group.share)}/s of ${num(group.usable)}/s among ${group.members}`;
  const said: Decision = { ...decision, reason: 'downstream_share', why };
  said.sentence = sentence(why, inForce, said);
  return said;
}
