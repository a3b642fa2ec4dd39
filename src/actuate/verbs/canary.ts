/** Ends a canary: the limiter itself decides for all again, by what it has decided by all along. Pure. Stage: actuate. */
import { canaryText, parseCanary } from '../../redis/canary.js';
import { endSentence } from '../canary.js';
import { type Planner, standing } from './plan.js';

export const stopCanary: Planner = (facts) => {
  const { params, limiter, actor } = facts;
  const canary = parseCanary(params.canary);
  if (canary === null || canary.ended !== undefined) {
    return {
      kind: 'nothing',
      sentence: `Nothing of ${limiter} is tried on a part of its subjects.`,
    };
  }
  const { values, settled } = standing(facts);
  const text = canaryText({ ...canary, ended: 'stopped' });
  return {
    kind: 'change',
    reason: 'canary_stopped',
    before: values,
    after: values,
    agreed: ['mode'],
    basis: params.canary,
    change: { ...settled, canary: text },
    sentence: endSentence(canary, 'stopped', `${actor} took it back`),
    detail: { canary },
    notes: [
      `${canary.percent} % of the subjects go back to ${limiter} within two seconds, by the policy that is adopted.`,
    ],
  };
};
