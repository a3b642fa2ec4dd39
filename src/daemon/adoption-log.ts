/** What the log says of a policy that was, or was not, adopted. Stage: daemon. */
import type { AdoptOutcome, LoadedPolicy } from '../actuate/adopt.js';
import type { Logger } from '../log.js';

/** One line for each policy that was, or was not, adopted. */
export function logAdoption(
  log: Logger,
  limiter: string,
  loaded: LoadedPolicy,
  outcome: AdoptOutcome,
): void {
  if (outcome.status === 'unchanged') return;
  const base = { limiter, file: loaded.file, policy: loaded.hash.slice(0, 12) };
  if (outcome.status === 'refused') {
    log.error({ event: 'policy_refused', ...base }, outcome.sentence);
    return;
  }
  const { epoch, revision } = outcome;
  const reason =
    outcome.status === 'changed'
      ? 'policy_adopted'
      : outcome.status === 'canary'
        ? 'canary_begins'
        : (`params_${outcome.status}` as const);
  log.info({ event: 'change', ...base, epoch, revision, reason }, outcome.sentence);
}
