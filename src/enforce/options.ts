/** What `createLimiter` is given, checked and with defaults filled in. Stage: enforce. */
import type { Cluster, Redis } from 'ioredis';
import { type Clock, systemClock } from '../clock.js';
import { FlyballTypeError } from '../errors.js';
import type { AlgorithmTerms } from '../redis/algorithms.js';
import { assertName, DEFAULT_PREFIX } from '../redis/keys.js';
import { PREFIX_PATTERN, resolvePrefix } from '../redis/locate.js';
import { type AlgorithmOptions, resolveTerms } from './algorithm-option.js';
import {
  checkDuration,
  checkNumber,
  checkOnRedisError,
  checkWhole,
  type OnRedisError,
  show,
} from './arguments.js';
import { type Count, checkCounted } from './count.js';
import { checkDraw, type Draw } from './draw-option.js';
import { checkKnown } from './known-options.js';
import { compileSubject, type SubjectTemplate } from './subject-template.js';
import type { TakeTracer } from './tracing.js';

export type RedisClient = Redis | Cluster;

/**
 * A limiter by name. The numbers in force come from Redis with every answer; those given here are used
 * only until a first answer has been seen, and when Redis has no params for this name.
 */
export interface LimiterOptions extends AlgorithmOptions {
  /** `[a-z0-9][a-z0-9._-]{0,63}`: the `limiter.name` of its policy. */
  name: string;
  /** Fleet-wide tokens per second, until Redis says otherwise. Without it, unknown numbers admit all. */
  rate?: number;
  /** Most tokens held, fleet-wide. Default: one second's worth, at least 1. */
  capacity?: number;
  /** In-flight cap, fleet-wide. Default: none. */
  inFlightMax?: number;
  /**
   * A second bucket for each subject. `subject` is the template that middleware fills: `'user:{userId}'`; the
   * adopted policy's beats this one.
   */
  perSubject?: { subject?: string; rate: number; capacity: number };
  /** Used only while the registry in Redis does not know this limiter. */
  group?: string;
  /** Key prefix. Default: FLYBALL_PREFIX, else `flyball`. */
  prefix?: string;
  /** Your own ioredis client; it is never closed here. */
  redis?: RedisClient;
  /** Default: FLYBALL_REDIS_URL, else the embedded server of `flyball run`, which may start later. */
  url?: string;
  /** Longest time a decision takes, 1 … 60000 ms. Default 50. */
  deadlineMs?: number;
  /**
   * When Redis does not answer: admit, deny, or decide here from the last numbers seen. The adopted policy's
   * choice beats this one. Default `local`.
   */
  onRedisError?: OnRedisError;
  /**
   * Repeat a denial in this process until the take could pass, for 1 s at most, and only while the revision holds:
   * who retries at once costs Redis nothing. A raise is followed within 1 s. Default true.
   */
  denyCache?: boolean;
  /**
   * Count who takes most and who is denied most, for `flyball top`: 128 of each are kept here and sent to Redis every
   * 10 s, where they stay for 65 minutes. Default true.
   */
  topSubjects?: boolean;
  /**
   * Makes a span of each take. Default: the tracer of the OpenTelemetry SDK that this process has started, if any;
   * false: no spans.
   */
  tracer?: TakeTracer | false;
  /**
   * What a take counts, once `done()` has told how the request ended. `failures`: `ok` is given back, for sign-in
   * guards; `successes`: `failed` is, for guards of what costs money. A take is charged at once all the same, so that a
   * burst cannot pass the limit. The adopted policy's choice beats this one. Default `all`.
   */
  count?: Count;
  /**
   * Hold each request's place under the in-flight cap in Redis, at one more call a turn. Who says true takes the other
   * services along; false: never. The adopted policy's choice beats this one. Default: where the cap is smaller than
   * the fleet, which shares cannot serve.
   */
  exact?: boolean;
  /**
   * `block`: draw tokens in blocks of a quarter of a second at most and decide from them here, where a bucket is hot
   * and its capacity has room for it. The adopted policy's choice beats this one. Default `each`: ask Redis each time.
   */
  draw?: Draw;
  /**
   * Does this process call `done()` for what it admits? Only then does the in-flight cap bind it. Default:
   * from the first `done()`, `run()` or middleware on.
   */
  completions?: boolean;
  /** Most takes that `wait` here at once, 1 … 100000; the next is rejected. Default 1000. */
  maxWaiting?: number;
  /** A request that never reported completion gives its in-flight place back after this. Default 300000 ms. */
  abandonedAfterMs?: number;
  /** Told of what an operator should know, at most once a minute each. Default: `process.emitWarning`. */
  onWarning?: (warning: { code: string; message: string }) => void;
  clock?: Clock;
}

export interface ResolvedOptions {
  name: string;
  prefix: string;
  group: string | undefined;
  /** null: the caller gave no numbers. */
  rate: number | null;
  capacity: number;
  inFlightMax: number;
  subjectRate: number;
  subjectCapacity: number;
  template: SubjectTemplate | null;
  /** undefined: the token bucket. */
  terms: AlgorithmTerms | undefined;
  deadlineMs: number;
  onRedisError: OnRedisError;
  denyCache: boolean;
  topSubjects: boolean;
  tracer: TakeTracer | false | undefined;
  count: Count;
  exact: boolean | undefined;
  draw: Draw;
  completions: boolean;
  maxWaiting: number;
  abandonedAfterMs: number;
  clock: Clock;
}

const KNOWN = [
  'name',
  'rate',
  'capacity',
  'inFlightMax',
  'perSubject',
  'group',
  'prefix',
  'redis',
  'url',
  'deadlineMs',
  'onRedisError',
  'algorithm',
  'windowMs',
  'cells',
  'denyCache',
  'topSubjects',
  'tracer',
  'count',
  'exact',
  'draw',
  'completions',
  'maxWaiting',
  'abandonedAfterMs',
  'onWarning',
  'clock',
] satisfies (keyof LimiterOptions)[];
const OF_SUBJECT = ['subject', 'rate', 'capacity'] as const;

export function resolveOptions(options: LimiterOptions): ResolvedOptions {
  checkKnown('createLimiter', options, KNOWN);
  assertName('limiter', options.name);
  if (options.group !== undefined) assertName('group', options.group);
  const { perSubject, rate, onRedisError = 'local' } = options;
  checkOnRedisError(onRedisError);
  if (perSubject) checkKnown('perSubject', perSubject, OF_SUBJECT);
  if (options.capacity !== undefined && rate === undefined) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `capacity is ${show(options.capacity)} but rate is missing. Give both, or neither.`,
    );
  }
  const knownRate = rate === undefined ? null : checkNumber('rate', rate);
  return {
    name: options.name,
    prefix: prefixOf(options.prefix),
    group: options.group,
    rate: knownRate,
    capacity:
      options.capacity === undefined
        ? Math.max(1, knownRate ?? 1)
        : checkNumber('capacity', options.capacity),
    inFlightMax:
      options.inFlightMax === undefined ? 0 : checkNumber('inFlightMax', options.inFlightMax, true),
    subjectRate: perSubject ? checkNumber('perSubject.rate', perSubject.rate) : -1,
    subjectCapacity: perSubject ? checkNumber('perSubject.capacity', perSubject.capacity) : 0,
    template: perSubject?.subject === undefined ? null : compileSubject(perSubject.subject),
    terms: resolveTerms(options, knownRate),
    deadlineMs: checkDuration('deadlineMs', options.deadlineMs ?? 50, 1, 60_000),
    onRedisError,
    denyCache: options.denyCache ?? true,
    topSubjects: options.topSubjects ?? true,
    tracer: options.tracer,
    count: checkCounted(options),
    exact: options.exact,
    draw: checkDraw(options.draw),
    completions: (options.completions ?? false) || options.exact === true,
    maxWaiting: checkWhole('maxWaiting', options.maxWaiting ?? 1000, 100_000),
    abandonedAfterMs: checkDuration(
      'abandonedAfterMs',
      options.abandonedAfterMs ?? 300_000,
      1000,
      86_400_000,
    ),
    clock: clockOf(options.clock),
  };
}

function clockOf(clock: Clock = systemClock): Clock {
  if (typeof clock?.nowMs === 'function' && typeof clock.monotonicMs === 'function') return clock;
  throw new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `clock is ${show(clock)}. Give { nowMs(), monotonicMs() }, or leave it out.`,
  );
}

/** As daemon and CLI do it: services that looked elsewhere would be limited by nobody. */
function prefixOf(given: string | undefined): string {
  const prefix = resolvePrefix(given) ?? DEFAULT_PREFIX;
  if (typeof prefix === 'string' && PREFIX_PATTERN.test(prefix)) return prefix;
  throw new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `${given === undefined ? 'FLYBALL_PREFIX' : 'prefix'} is ${show(prefix)}. Use 1 to 64 letters, digits, '.', '_', '-'.`,
  );
}
