/** The takes of one event-loop turn go to Redis in one call, in order of arrival, within their deadline. Stage: enforce. */
import type { AlgorithmTerms } from '../redis/algorithms.js';
import type { InForce, TakeAnswer, TakeReply, TakeRequest } from '../redis/calls.js';
import type { LimiterKeys } from '../redis/keys.js';
import { take as takeScript } from '../redis/scripts.js';
import { onAbort } from './abort.js';
import type { CallParts } from './call-parts.js';

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
  answered(
    answer: TakeAnswer | null,
    inForce: InForce | null,
    nowMs: number,
    reply: TakeReply | null,
  ): void;
  /** The signal said stop. */
  failed(reason: unknown): void;
}

export interface Taker {
  /** Calls `pending.answered` or `pending.failed` once. */
  take(pending: Pending, deadlineAtMs: number): void;
  /** A call that reads Redis time and numbers, and charges nothing. */
  look(): Promise<unknown>;
}

export interface TakerOptions extends CallParts {
  /** How takes are decided now; undefined: the token bucket. */
  terms: () => AlgorithmTerms | undefined;
  /** Every reply's numbers, once a call. */
  onReply: (inForce: InForce) => void;
  /** A reply of the script that asks what is known of single subjects. */
  onRuled: (reply: TakeReply) => void;
}

export function createTaker(options: TakerOptions): Taker {
  const { redis, finder, time, view, stats, clock, deadlineMs } = options;
  const returnMs = returnMsOf(deadlineMs);
  let queue: Pending[] = [];
  let deadlineAtMs = 0;
  let underWay = 0;
  /** Takes come one at a time: the next would wait for company in vain. */
  let alone = false;
  let shadow = false;
  /** Something is known of single subjects, as far as the last answer told. */
  let rules = false;

  function enqueue(pending: Pending, itsDeadlineAtMs: number) {
    if (queue.length === 0) {
      if (alone && underWay === 0) return send([pending], itsDeadlineAtMs);
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
    alone = batch.length <= 1;
    if (batch.length === 0) return;
    if (underWay > 0 || batch.length < SPLIT_AT) return send(batch, deadlineAtMs);
    const half = batch.length >> 1;
    send(batch.slice(0, half), deadlineAtMs);
    send(batch.slice(half), deadlineAtMs);
  }

  /** At most one call to learn the time, one repeated for being late, one for other buckets, one for other rules. */
  function send(takes: Pending[], deadlineAtMs: number) {
    let mayLearn = true;
    let mayBeLate = true;
    let mayChangeMode = true;
    let mayChangeRules = true;
    underWay += 1;

    function attempt() {
      const chargeByUs = time.latestAt(deadlineAtMs - returnMs);
      const asked = { takes, chargeByUs, terms: options.terms(), rules, sentMs: 0 };
      options.link().ask(deadlineAtMs, {
        start: () => call(asked),
        answered(reply, late) {
          learn(asked, reply);
          const { status } = reply;
          if (late) {
            if (status === 'ok') stats.overtaken += 1;
            return;
          }
          if (status === 'ok') return end(takes, reply);
          if (status === 'mode' && mayChangeMode) mayChangeMode = false;
          else if (status === 'rules' && mayChangeRules) mayChangeRules = false;
          else if (chargeByUs === null && mayLearn) mayLearn = false;
          else if (chargeByUs !== null && mayBeLate) mayBeLate = false;
          else return failed();
          attempt();
        },
        failed,
      });
    }
    function failed() {
      stats.redisErrors += 1;
      end(takes, null);
    }
    attempt();
  }

  function end(takes: Pending[], reply: TakeReply | null) {
    underWay -= 1;
    const nowMs = clock.monotonicMs();
    const inForce = reply?.inForce ?? null;
    for (let i = 0; i < takes.length; i++) {
      const pending = takes[i]!;
      if (pending.aborted) continue;
      pending.answered(reply && reply.answers[i]!, inForce, nowMs, reply);
    }
  }

  function call(asked: Attempt): Promise<TakeReply> {
    const { keys } = finder;
    return keys === null
      ? finder.find().then((found) => script(found, asked))
      : script(keys, asked);
  }

  function script(keys: LimiterKeys, asked: Attempt): Promise<TakeReply> {
    const { takes, chargeByUs, terms, rules } = asked;
    const fallback = view.fallback();
    stats.calls += 1;
    asked.sentMs = clock.monotonicMs();
    return takeScript(redis, { keys, takes, chargeByUs, fallback, shadow, terms, rules });
  }

  function learn(asked: Attempt, reply: TakeReply): void {
    const { chargeByUs, terms, sentMs } = asked;
    time.learn(reply.nowUs, sentMs, clock.monotonicMs());
    shadow = reply.inForce.mode === 'shadow';
    if (reply.status === 'late' && chargeByUs !== null) stats.late += 1;
    if (terms !== undefined) reply.terms = terms;
    if (reply.status === 'rules') rules = !asked.rules;
    else if (asked.rules) options.onRuled(reply);
    options.onReply(reply.inForce);
  }

  return {
    take(pending, itsDeadlineAtMs) {
      if (pending.signal !== undefined) followSignal(pending, pending.signal);
      enqueue(pending, itsDeadlineAtMs);
    },
    async look() {
      const asked = { takes: [LOOK], chargeByUs: null, terms: undefined, rules: false, sentMs: 0 };
      learn(asked, await call(asked));
    },
  };
}

const LOOK: TakeRequest = { subject: null, cost: 0, priority: 'default' };

/** One call to Redis. */
interface Attempt {
  readonly takes: readonly TakeRequest[];
  readonly chargeByUs: number | null;
  readonly terms: AlgorithmTerms | undefined;
  readonly rules: boolean;
  sentMs: number;
}

const isAborted = (pending: Pending) => pending.aborted;

function followSignal(pending: Pending, signal: AbortSignal): void {
  const leave = onAbort(signal, () => {
    pending.aborted = true;
    pending.failed(signal.reason);
  });
  const { answered } = pending;
  pending.answered = (answer, inForce, nowMs, reply) => {
    leave();
    answered.call(pending, answer, inForce, nowMs, reply);
  };
}
