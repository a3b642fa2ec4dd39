/** What a limiter is made of, for those that decide several limiters at once or wrap one. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';
import type { CanarySide } from './canary-side.js';
import type { Limiter } from './limiter.js';
import type { createWiring } from './wiring.js';

export type LimiterParts = ReturnType<typeof createWiring>;

const partsByLimiter = new WeakMap<object, LimiterParts>();
const canaryByParts = new WeakMap<LimiterParts, CanarySide>();

export function keepParts(limiter: Limiter, parts: LimiterParts, canary: CanarySide): Limiter {
  partsByLimiter.set(limiter, parts);
  canaryByParts.set(parts, canary);
  return limiter;
}

/** Who decides for this subject: the limiter itself, or its canary. */
export function partsDeciding(own: LimiterParts, subject: string | null): LimiterParts {
  if (own.adopted.canary === undefined) return own;
  return canaryByParts.get(own)?.decides(subject) ?? own;
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
