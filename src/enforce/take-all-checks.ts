/** What `takeAll` is given, checked before anything is asked: limiters that one call can decide, wishes by name. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import type { Priority } from '../redis/calls.js';
import { MAX_TOGETHER } from '../redis/together.js';
import {
  checkCall,
  checkCost,
  checkOnRedisError,
  checkPriority,
  checkSubject,
  type OnRedisError,
  show,
} from './arguments.js';
import type { Limiter } from './limiter.js';
import { type LimiterParts, partsOf } from './limiter-parts.js';
import type { TakeWish } from './pending-take.js';

/** What is taken from one limiter of the set. */
export interface TakeAllWish {
  subject?: string | null;
  /** Tokens, > 0, at most 6 decimals. Default 1. */
  cost?: number;
  /** Default `default`. */
  priority?: Priority;
}

export interface TakeAllOptions {
  /** Aborting rejects with its reason; before the call is sent, nothing is taken. */
  signal?: AbortSignal;
  /** For all limiters of this take; else each has its own. */
  onRedisError?: OnRedisError;
}

/** The parts of limiters that one script call can decide, or a typed error that names who cannot join. */
export function checkMembers(limiters: readonly Limiter[]): LimiterParts[] {
  if (!Array.isArray(limiters) || limiters.length === 0 || limiters.length > MAX_TOGETHER) {
    const given = Array.isArray(limiters) ? `${limiters.length} limiters` : show(limiters);
    throw refused(`it was given ${given}. Give an array of 1 to ${MAX_TOGETHER} limiters`);
  }
  const members = limiters.map((each, i) => partsOf(`takeAll: limiter ${i + 1}`, each));
  const lead = members[0]!;
  const seen = new Set<string>();
  for (const { resolved, redis } of members) {
    const { name, group, prefix, terms } = resolved;
    if (seen.has(name)) throw refused(`${show(name)} stands twice. Name each limiter once`);
    seen.add(name);
    if (redis !== lead.redis || prefix !== lead.resolved.prefix) {
      throw refused(
        `${show(name)} has another Redis client or prefix than ${show(lead.resolved.name)}. Give all limiters the same \`redis\` (or url) and \`prefix\``,
      );
    }
    if (members.length > 1 && (group === undefined || group !== lead.resolved.group)) {
      const has = group === undefined ? 'no group' : `group ${show(group)}`;
      throw refused(
        `${show(name)} has ${has}, but only keys of one group lie on one cluster slot. Give each createLimiter, and each policy, the same \`group\``,
      );
    }
    if (terms !== undefined && terms.algorithm !== 'token-bucket') {
      throw refused(
        `${show(name)} has algorithm ${show(terms.algorithm)}. Only token buckets can be taken from together: leave \`algorithm\` out, or take from it by itself`,
      );
    }
  }
  return members;
}

function refused(why: string): FlyballTypeError {
  return new FlyballTypeError('FLYBALL_E_ENFORCE_TAKE_ALL', `takeAll: ${why}.`);
}

/** One wish a limiter, in order; who is not named gives one token of its total. */
export function readWishes(
  members: readonly LimiterParts[],
  wishes: Readonly<Record<string, TakeAllWish>>,
  options: TakeAllOptions,
): TakeWish[] {
  checkCall(options, options?.signal, 'the second argument of takeAll');
  checkCall(wishes, undefined, 'the first argument of takeAll');
  const names = members.map(({ resolved }) => resolved.name);
  for (const name of Object.keys(wishes)) {
    if (names.includes(name)) continue;
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `takeAll does not hold a limiter ${show(name)}. It holds ${names.join(', ')}.`,
    );
  }
  const { signal, onRedisError } = options;
  if (onRedisError !== undefined) checkOnRedisError(onRedisError);
  signal?.throwIfAborted();
  return members.map((member, i) => {
    const name = names[i]!;
    // A limiter may be named `constructor`: what an object inherits is no wish.
    const wish = (Object.hasOwn(wishes, name) ? wishes[name] : undefined) ?? {};
    checkCall(wish, undefined, `takeAll: what is taken from ${name}`);
    const { subject, cost = 1, priority = 'default' } = wish;
    checkSubject(subject);
    checkCost(cost);
    checkPriority(priority);
    const choice = onRedisError ?? member.onRedisError();
    return { subject: subject ?? null, cost, priority, onRedisError: choice, signal };
  });
}
