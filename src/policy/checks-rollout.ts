/** Checks of routes and rollout together with the rest of the limiter. Stage: policy. */
import { ROLLOUT_MAX_BYTES, rolloutText } from '../redis/rollout.js';
import type { Draft, Report } from './draft.js';

/** Left for what a person adds. */
const OWN_BYTES = ROLLOUT_MAX_BYTES - 1024;

export function checkRollout(draft: Draft, report: Report): void {
  const { rollout } = draft.limiter ?? {};
  if (rollout?.percent === undefined) return;
  const { percent } = rollout;
  if (!isWhole(percent * 100)) {
    report('limiter.rollout.percent', `is ${percent}: two decimals are the finest part.`);
  }
  const subjects = rollout.subjects?.filter((subject) => subject !== undefined) ?? [];
  if (new TextEncoder().encode(rolloutText({ percent, subjects })).length > OWN_BYTES) {
    report(
      'limiter.rollout.subjects',
      `take more than ${OWN_BYTES} bytes. Name fewer, or raise percent.`,
    );
  }
}

/** But for what a double of this size cannot tell: 0.29 × 100 is 28.999999999999996. */
function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-9;
}
