/** How the version of a policy stands that is tried on a part of the subjects, in a sentence. Pure. Stage: dashboard. */
import type { CanaryView } from '../../view/status-canary.js';
import { number } from '../../view/text.js';
import { localTime } from '../data/times.js';

const ENDED = {
  failed: 'failed, and was taken back',
  unproven: 'proved nothing, and was taken back',
  stopped: 'was ended',
};

export function canarySentence(canary: CanaryView, nowMs: number): string {
  const { policy, percent, judgedMs, untilMs, ended, rests } = canary;
  const version = `Policy ${policy.slice(0, 12)}`;
  if (ended !== null) return `${version} ${ENDED[ended]}; it waits for its file to change.`;
  if (nowMs >= untilMs) return `${version} is over unjudged: no service asks it any more.`;
  const tried = `${version} is tried on ${number(percent)} % of the subjects`;
  if (rests !== null) return `${tried}. It rests, and its time does not count: ${rests}.`;
  return `${tried}; it is judged after ${localTime(judgedMs, nowMs)}.`;
}
