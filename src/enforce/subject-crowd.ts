/** Counts takes of subjects that came past the most live ones and share a bucket, and tells the operator. Stage: enforce. */
import type { TakeReply } from '../redis/calls.js';
import type { Stats } from './stats.js';
import type { Warn } from './warnings.js';

export interface CrowdOptions {
  name: string;
  stats: Pick<Stats, 'overflow'>;
  warn: Warn;
}

/** Told of each reply of the script that asks what is known of single subjects. */
export function createCrowdWatch({ name, stats, warn }: CrowdOptions): (reply: TakeReply) => void {
  return ({ answers }) => {
    let shared = 0;
    for (const answer of answers) if (answer.shared) shared += 1;
    if (shared === 0) return;
    stats.overflow += shared;
    warn(
      'FLYBALL_W_SUBJECTS_OVERFLOW',
      `limiter ${name}: as many subjects live as the policy allows (limiter.subjects.max), so newcomers share one bucket. Is somebody making up subjects? Else raise the number.`,
    );
  };
}
