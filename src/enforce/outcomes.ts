/** `limiter.outcome`: how something ended for a subject, counted once in Redis; in a row they raise its tier. Stage: enforce. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../clock.js';
import { FlyballTypeError } from '../errors.js';
import { countOutcome, type OutcomeReply } from '../redis/subject-outcome.js';
import type { KeyFinder } from './address.js';
import { checkCall, checkSubject, show } from './arguments.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { Warn } from './warnings.js';

/** Nobody's answer waits for it. */
const DEADLINE_MS = 500;
/** Once more with the same id: it is counted once however often it arrives. */
const ATTEMPTS = 2;

export interface OutcomeOptions {
  /** Of your order or payment, 1 to 256 characters: the same one within a day is counted once. Default: a random one. */
  id?: string;
}

/** What stands of the subject now. `away`: Redis did not answer, so perhaps nothing was counted. */
export type OutcomeResult = Omit<OutcomeReply, 'status'> & {
  status: OutcomeReply['status'] | 'away';
};

export interface OutcomesOptions {
  name: string;
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  clock: Clock;
  warn: Warn;
  onCounted: () => void;
}

export interface Outcomes {
  count(subject: string, outcome: string, options?: OutcomeOptions): Promise<OutcomeResult>;
}

const NOTHING_KNOWN: OutcomeResult = {
  status: 'away',
  inARow: 0,
  tier: 0,
  rate: null,
  capacity: null,
};

export function createOutcomes(options: OutcomesOptions): Outcomes {
  const { name: limiter, redis, finder, clock, warn } = options;

  async function send(subject: string, name: string, id: string): Promise<OutcomeResult> {
    for (let attempt = 1; attempt <= ATTEMPTS && options.link().up; attempt++) {
      try {
        return await options.link().within(clock.monotonicMs() + DEADLINE_MS, async () => {
          const keys = finder.keys ?? (await finder.find());
          return countOutcome(redis, { keys, subject, name, id });
        });
      } catch {
        // The link has counted it.
      }
    }
    warn(
      'FLYBALL_W_OUTCOME_LOST',
      `limiter ${limiter}: Redis did not answer, so an outcome "${name}" may not have been counted. Send it again with the same id.`,
    );
    return NOTHING_KNOWN;
  }

  return {
    async count(subject, name, given = {}) {
      checkCall(given, undefined, 'the third argument of outcome');
      const { id } = given;
      check(subject, name, id);
      const result = await send(subject, name, id ?? randomBytes(16).toString('hex'));
      if (result.status === 'counted') options.onCounted();
      if (result.status === 'unknown' || result.status === 'no-tiers') {
        warn(
          'FLYBALL_W_OUTCOME_UNKNOWN',
          `limiter ${limiter}: no tier of the adopted policy counts the outcome "${name}" (limiter.perSubject.tiers: on, resetOn). Is it misspelt?`,
        );
      }
      return result;
    },
  };
}

function check(subject: unknown, name: unknown, id: unknown): void {
  checkSubject(subject);
  if (subject === undefined || subject === null) {
    throw wrong('subject', subject, 'the subject that it ended for: a non-empty string');
  }
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw wrong('outcome', name, "a name of 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-': 'paid'");
  }
  if (id === undefined) return;
  if (typeof id !== 'string' || id.length < 1 || id.length > 256) {
    throw wrong('id', id, 'a string of 1 to 256 characters, or leave it out');
  }
}

function wrong(what: string, value: unknown, allowed: string): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OUTCOME',
    `${what} is ${show(value)}. Give ${allowed}.`,
  );
}
