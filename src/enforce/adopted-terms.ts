/** What the adopted policy says to services beside the numbers: the subject's template, the rollout, … Stage: enforce. */
import type { Clock } from '../clock.js';
import { ALGORITHMS, type Algorithm, type AlgorithmTerms } from '../redis/algorithms.js';
import type { InForce } from '../redis/calls.js';
import type { Standing } from '../redis/canary.js';
import type { OnRedisError, ParamField } from '../redis/params.js';
import { parseServiceTerms, type ServiceTerms } from '../redis/service-terms.js';
import { isOlder, type WriteOrder } from '../redis/write-order.js';
import type { KeyFinder } from './address.js';
import { type CanaryReach, compileCanary } from './canary-reach.js';
import { expire, type Link } from './link.js';
import type { RedisClient } from './options.js';
import { compileRollout, type Reach } from './rollout.js';
import { compileSubject, type SubjectTemplate } from './subject-template.js';
import type { Warn } from './warnings.js';

/** The params are read for this at most so often, however often the law moves the numbers. */
const READ_EVERY_MS = 1_000;
const NEEDED =
  'Allow HMGET on its params: without it the adopted onRedisError and subject are not known here.';
const FIELDS = [
  'epoch',
  'revision',
  'onRedisError',
  'subject',
  'algorithm',
  'windowMs',
  'cells',
  'terms',
  'rollout',
  'canary',
  'pinnedUntil',
  'frozenUntil',
] satisfies ParamField[];
const CHOICES: readonly string[] = ['open', 'closed', 'local'] satisfies OnRedisError[];

export interface AdoptedTerms {
  /** null: no policy has said it, as far as this process has seen. */
  readonly onRedisError: OnRedisError | null;
  readonly template: SubjectTemplate | null;
  readonly algorithm: AlgorithmTerms | null;
  /** What else the policy states; empty before it was read. */
  readonly service: ServiceTerms;
  /** Whom the limiter is enforced for: null: all; undefined: not read yet. */
  readonly rollout: Reach | null | undefined;
  /** Whom a canary decides for; undefined: nobody, as far as is known. */
  readonly canary: CanaryReach | undefined;
  /** Until when a person holds the limiter. */
  readonly holds: Pick<Standing, 'pinnedUntil' | 'frozenUntil'>;
  /** A reply carried these numbers: newer ones are followed by a reading of the params. */
  see(inForce: InForce): void;
  /** Settles when the params were read, or when one deadline has passed without an answer; never rejects. */
  firstRead(): Promise<void>;
  close(): void;
}

export interface AdoptedTermsOptions {
  name: string;
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  clock: Clock;
  deadlineMs: number;
  warn: Warn;
}

export function createAdoptedTerms(options: AdoptedTermsOptions): AdoptedTerms {
  const { name, redis, finder, clock, deadlineMs, warn } = options;
  let onRedisError: OnRedisError | null = null;
  let template: SubjectTemplate | null = null;
  let algorithm: AlgorithmTerms | null = null;
  let service: ServiceTerms = {};
  let rollout: Reach | null | undefined;
  let rolloutText = '';
  let canary: CanaryReach | undefined;
  let canaryText = '';
  let holds: AdoptedTerms['holds'] = { pinnedUntil: 0, frozenUntil: 0 };
  let read: WriteOrder | null = null;
  let lastMs = Number.NEGATIVE_INFINITY;
  let reading = false;
  let later: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let tellFirst = () => {};
  const first = new Promise<void>((ok) => {
    tellFirst = ok;
  });
  let bounded: Promise<void> | undefined;

  function see(inForce: InForce): void {
    // Missing params say nothing: what was read last holds, as the last numbers do.
    if (!inForce.managed) nothingSaid();
    if (!inForce.managed || closed || reading || later !== undefined) return;
    if (read !== null && !isOlder(read, inForce)) return;
    const waitMs = lastMs + READ_EVERY_MS - clock.monotonicMs();
    if (waitMs <= 0) void readTerms();
    else later = setTimeout(readLater, waitMs).unref();
  }

  /** What was read before holds; before a first reading the limiter is enforced for all. */
  function nothingSaid(): void {
    if (rollout === undefined) rollout = null;
    tellFirst();
  }

  function readLater(): void {
    later = undefined;
    void readTerms();
  }

  /** A reading that fails is repeated at the next reply, since what was seen stays newer than what was read. */
  async function readTerms(): Promise<void> {
    reading = true;
    lastMs = clock.monotonicMs();
    try {
      const fields = await options.link().within(lastMs + deadlineMs, async () => {
        const { params } = finder.keys ?? (await finder.find());
        return redis.hmget(params, ...FIELDS);
      });
      const [epoch, revision, choice, subject, kind, windowMs, cells, terms, ...rest] = fields;
      const [reach, tried, pinned, frozen] = rest;
      const order = { epoch: Number(epoch), revision: Number(revision) };
      // A replica that lags behind must not bring back what has been replaced.
      if (epoch && revision && (read === null || !isOlder(order, read))) {
        read = order;
        onRedisError = choice && CHOICES.includes(choice) ? (choice as OnRedisError) : null;
        algorithm = algorithmOf(kind, windowMs, cells);
        service = parseServiceTerms(terms);
        follow(subject ?? '');
        if (rollout === undefined || rolloutText !== (reach ?? '')) {
          rolloutText = reach ?? '';
          rollout = compileRollout(name, rolloutText);
        }
        if (canaryText !== (tried ?? '')) {
          canaryText = tried ?? '';
          canary = compileCanary(canaryText);
        }
        holds = { pinnedUntil: Number(pinned ?? 0), frozenUntil: Number(frozen ?? 0) };
      }
      nothingSaid();
    } catch (error) {
      // Redis away or slow: the link has counted it. A missing right would else never be heard of.
      const { message } = error as Error;
      if (message.startsWith('NOPERM')) {
        nothingSaid();
        warn('FLYBALL_W_PARAMS_UNREADABLE', `limiter ${name}: ${message}. ${NEEDED}`);
      }
    } finally {
      reading = false;
    }
  }

  function follow(source: string): void {
    if (source === (template?.source ?? '')) return;
    try {
      template = source === '' ? null : compileSubject(source);
    } catch (error) {
      warn(
        'FLYBALL_W_SUBJECT_TEMPLATE',
        `limiter ${name}: the adopted policy's subject cannot be used, the last one is kept: ${(error as Error).message}`,
      );
    }
  }

  return {
    get onRedisError() {
      return onRedisError;
    },
    get algorithm() {
      return algorithm;
    },
    get service() {
      return service;
    },
    get rollout() {
      return rollout;
    },
    get canary() {
      return canary;
    },
    get holds() {
      return holds;
    },
    get template() {
      return template;
    },
    see,
    firstRead() {
      bounded ??= expire(first, deadlineMs).catch(() => {});
      return bounded;
    },
    close() {
      closed = true;
      clearTimeout(later);
      tellFirst();
    },
  };
}

type Field = string | null | undefined;

/** null: the policy leaves it to the service, or is of a newer version with an algorithm that is unknown here. */
function algorithmOf(name: Field, windowMs: Field, cells: Field): AlgorithmTerms | null {
  const algorithm = name as Algorithm;
  if (!name || !ALGORITHMS.includes(algorithm)) return null;
  return { algorithm, windowMs: Number(windowMs ?? 0), cells: Number(cells ?? 0) };
}
