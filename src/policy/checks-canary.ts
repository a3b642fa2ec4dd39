/** Checks of the canary together with the limiter, and of the names that canaries have. Stage: policy. */
import { canaryName, isCanaryName, mayHaveCanary } from '../redis/canary.js';
import type { Draft, Report } from './draft.js';

export function checkCanary(draft: Draft, report: Report): void {
  const name = draft.limiter?.name;
  if (name !== undefined && isCanaryName(name)) {
    report('limiter.name', `is "${name}": canaries of limiters are named so. Choose another end.`);
  }
  if (!('canary' in draft)) return;
  if (name !== undefined && !mayHaveCanary(name)) {
    const length = canaryName(name).length;
    report('canary', `needs ${canaryName(name)}, a name of ${length} characters; 64 are allowed.`);
  }
  const percent = draft.canary?.percent;
  if (percent !== undefined && Math.abs(percent * 100 - Math.round(percent * 100)) > 1e-9) {
    report('canary.percent', `is ${percent}: two decimals are the finest part.`);
  }
  if (draft.limiter?.rollout?.percent !== undefined && draft.limiter.rollout.percent < 100) {
    report('canary', 'and limiter.rollout exclude each other: finish the rollout first.');
  }
}
