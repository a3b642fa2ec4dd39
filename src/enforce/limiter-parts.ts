/** What a limiter is made of, for those that decide several limiters at once or wrap one. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';
import type { Limiter } from './limiter.js';
import type { createWiring } from './wiring.js';

export type LimiterParts = ReturnType<typeof createWiring>;

const partsByLimiter = new WeakMap<object, LimiterParts>();

export function keepParts(limiter: Limiter, parts: LimiterParts): Limiter {
  partsByLimiter.set(limiter, parts);
  return limiter;
}

/** The parts of what `createLimiter` made; anything else is the caller's mistake in `field`. */
export function partsOf(field: string, limiter: unknown): LimiterParts {
  const parts =
    typeof limiter === 'object' && limiter !== null ? partsByLimiter.get(limiter) : undefined;
  if (parts === undefined) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `${field} is ${show(limiter)}. Give what createLimiter() returned.`,
    );
  }
  return parts;
}
