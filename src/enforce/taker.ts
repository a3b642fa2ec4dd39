/** The takes of one event-loop turn go to Redis in one call, in order of arrival, within their deadline. Stage: enforce. */
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { AlgorithmTerms } from '../redis/algorithms.js';
import type { InForce, TakeAnswer, TakeCall, TakeReply, TakeRequest } from '../redis/calls.js';
import { take as takeScript } from '../redis/scripts.js';
import type { KeyFinder } from './address.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { RedisTime } from './redis-time.js';
import type { Stats } from './stats.js';

/** Bounds the time one call holds Redis: about 1 ms. */
const MAX_BATCH = 512;
/**
 * A batch of this size goes as two calls when none is under way: one half is prepared and read while Redis decides
 * the other, and neither side waits for the other's work.
 */
const SPLIT_AT = 64;
/** Redis may charge until this share of the deadline (at most 8 ms) is left: for the way back, and late timers. */
const RETURN_SHARE = 0.16;
const RETURN_MAX_MS = 8;

/** What of a deadline is left for the way back. */
export function returnMsOf(deadlineMs: number): number {
  return Math.min(RETURN_MAX_MS, deadlineMs * RETURN_SHARE);
}

/**
 * A take that waits for its answer. One object and two calls instead of promises within promises: with hundreds
 * under way, what a take allocates is most of what it costs.
 */
export interface Pending extends TakeRequest {
  signal: AbortSignal | undefined;
  aborted: boolean;
  /** What Redis answered, or null when it did not in time. Must not throw. */
  answered(answer: TakeAnswer | null, inForce: InForce | null, nowMs: number): void;
  /** The signal said stop. */
  failed(reason: unknown): void;
}

export interface Taker {
  /** Calls `pending.answered` or `pending.failed` once. */
  take(pending: Pending, deadlineAtMs: number): void;
  /** A call that reads Redis time and numbers, and charges nothing. */
  look(): Promise<unknown>;
}

export interface TakerOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  view: InForceView;
  stats: Stats;
  clock: Clock;
  deadlineMs: number;
  /** How takes are decided now; undefined: the token bucket. */
  terms: () => AlgorithmTerms | undefined;
  /** Every reply's numbers, once a call. */
  onReply: (inForce: InForce) => void;
}

export function createTaker(options: TakerOptions): Taker {
  const { redis, finder, time, view, stats, clock, deadlineMs } = options;
  const returnMs = returnMsOf(deadlineMs);
  let queue: Pending[] = [];
  let deadlineAtMs = 0;
  let underWay = 0;
  let shadow = false;

  function enqueue(pending: Pending, itsDeadlineAtMs: number) {
    if (queue.length === 0) {
      deadlineAtMs = itsDeadlineAtMs;
      setImmediate(flush);
    }
    // The most urgent rules: nobody in the batch may wait beyond its own deadline.
    deadlineAtMs = Math.min(deadlineAtMs, itsDeadlineAtMs);
    queue.push(pending);
    if (queue.length >= MAX_BATCH) flush();
  }

  function flush() {
    if (queue.length === 0) return;
    const batch = queue.some(isAborted) ? queue.filter((each) => !each.aborted) : queue;
    queue = [];
    if (batch.length === 0) return;
    if (underWay > 0 || batch.length < SPLIT_AT) return void send(batch, deadlineAtMs);
    const half = batch.length >> 1;
    void send(batch.slice(0, half), deadlineAtMs);
    void send(batch.slice(half), deadlineAtMs);
  }

  async function send(batch: Pending[], deadlineAtMs: number) {
    let reply: TakeReply | null = null;
    underWay += 1;
    try {
      reply = await ask(batch, deadlineAtMs);
    } catch {
      stats.redisErrors += 1;
    }
    underWay -= 1;
    const nowMs = clock.monotonicMs();
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i]!;
      if (pending.aborted) continue;
      pending.answered(reply?.answers[i] ?? null, reply?.inForce ?? null, nowMs);
    }
  }

  /** At most one call to learn the time, one repeated for being late, one for the other set of buckets. */
  async function ask(takes: readonly TakeRequest[], deadlineAtMs: number): Promise<TakeReply> {
    let mayLearn = true;
    let mayBeLate = true;
    let mayChangeMode = true;
    for (;;) {
      const chargeByUs = time.latestAt(deadlineAtMs - returnMs);
      const reply = await call(takes, chargeByUs, deadlineAtMs);
      if (reply.status === 'ok') return reply;
      if (reply.status === 'mode' && mayChangeMode) mayChangeMode = false;
      else if (chargeByUs === null && mayLearn) mayLearn = false;
      else if (chargeByUs !== null && mayBeLate) mayBeLate = false;
      else throw new FlyballError('FLYBALL_E_ENFORCE_LATE', 'Redis answered too late to charge');
    }
  }

  function call(
    takes: readonly TakeRequest[],
    chargeByUs: number | null,
    deadlineAtMs: number,
  ): Promise<TakeReply> {
    let expired = false;
    const reply = options.link().within(deadlineAtMs, async () => {
      const keys = finder.keys ?? (await finder.find());
      const fallback = view.fallback();
      const request = { keys, takes, chargeByUs, fallback, shadow, terms: options.terms() };
      const reply = await script(request);
      if (expired && reply.status === 'ok') stats.overtaken += 1;
      return reply;
    });
    return reply.catch((error) => {
      expired = true;
      throw error;
    });
  }

  async function script(request: TakeCall): Promise<TakeReply> {
    const sentMs = clock.monotonicMs();
    stats.calls += 1;
    const reply = await takeScript(redis, request);
    time.learn(reply.nowUs, sentMs, clock.monotonicMs());
    shadow = reply.inForce.mode === 'shadow';
    if (reply.status === 'late' && request.chargeByUs !== null) stats.late += 1;
    options.onReply(reply.inForce);
    return reply;
  }

  return {
    take(pending, itsDeadlineAtMs) {
      if (pending.signal !== undefined) followSignal(pending, pending.signal);
      enqueue(pending, itsDeadlineAtMs);
    },
    async look() {
      const keys = finder.keys ?? (await finder.find());
      return script({
        keys,
        takes: [{ subject: null, cost: 0, priority: 'default' }],
        chargeByUs: null,
        fallback: view.fallback(),
        shadow,
      });
    },
  };
}

const isAborted = (pending: Pending) => pending.aborted;

function followSignal(pending: Pending, signal: AbortSignal): void {
  const abort = () => {
    pending.aborted = true;
    pending.failed(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  const { answered } = pending;
  pending.answered = (answer, inForce, nowMs) => {
    signal.removeEventListener('abort', abort);
    answered.call(pending, answer, inForce, nowMs);
  };
}
