/** What `protect` may be given, and the terms of its local breaker, with defaults filled in. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { checkDuration, checkWhole, show } from './arguments.js';
import { checkKnown } from './known-options.js';

/** When the calls of this process alone say that the upstream is gone. */
export interface BreakerOptions {
  /** Calls within the window before it may open. Default 20. */
  volumeThreshold?: number;
  /** It opens above this share of failures and timeouts, 0 … 1. Default 0.5. */
  errorRatio?: number;
  /** Default 10000. */
  windowMs?: number;
  /** From open to a single probe. Default 5000. */
  openMs?: number;
}

export const OF_PROTECT: readonly string[] = [
  'limiter',
  'timeoutMs',
  'take',
  'isFailure',
  'codeOf',
  'breaker',
  'fallback',
];
const OF_BREAKER = [
  'volumeThreshold',
  'errorRatio',
  'windowMs',
  'openMs',
] satisfies (keyof BreakerOptions)[];

export function resolveBreaker(given: BreakerOptions | false | undefined) {
  if (given === false) return null;
  if (given) checkKnown('protect: breaker', given, OF_BREAKER);
  const { volumeThreshold = 20, errorRatio = 0.5, windowMs = 10_000, openMs = 5_000 } = given ?? {};
  if (typeof errorRatio !== 'number' || !(errorRatio >= 0 && errorRatio < 1)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `breaker.errorRatio is ${show(errorRatio)}. Use a number ≥ 0 and < 1.`,
    );
  }
  return {
    volumeThreshold: checkWhole('breaker.volumeThreshold', volumeThreshold, 1_000_000),
    errorRatio,
    windowMs: checkDuration('breaker.windowMs', windowMs, 100, 3_600_000),
    openMs: checkDuration('breaker.openMs', openMs, 10, 3_600_000),
  };
}
