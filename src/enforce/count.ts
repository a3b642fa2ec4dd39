/** Which requests a limiter counts, by how they ended. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import type { AlgorithmOptions } from './algorithm-option.js';
import { show } from './arguments.js';
import type { Outcome } from './recorder.js';

export type Count = 'all' | 'failures' | 'successes';

/**
 * What is known not to be counted goes back. Of a call that timed out or was cancelled nobody knows whether it did its
 * work (the message was sent, the password tried): it stays charged.
 */
export const GIVEN_BACK: Record<Count, Outcome | null> = {
  all: null,
  failures: 'ok',
  successes: 'failed',
};

export function checkCounted(options: AlgorithmOptions & { count?: Count }): Count {
  const { count = 'all', algorithm } = options;
  if (!Object.hasOwn(GIVEN_BACK, count)) {
    throw refused(count, "Use 'all', 'failures' or 'successes'");
  }
  if (count !== 'all' && algorithm === 'leaky-bucket') {
    throw refused(count, "A leaky bucket gives nothing back: use 'all', or another algorithm");
  }
  return count;
}

function refused(count: unknown, mend: string): FlyballTypeError {
  return new FlyballTypeError('FLYBALL_E_ENFORCE_OPTION', `count is ${show(count)}. ${mend}.`);
}
