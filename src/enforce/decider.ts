/** One take from request to decision: a place in flight first, then tokens from Redis, or without it. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { InForce, TakeAnswer, TakeReply } from '../redis/calls.js';
import { costRefused, type OnRedisError } from './arguments.js';
import { fromBlock } from './block-decision.js';
import type { Blocks } from './blocks.js';
import {
  type Basis,
  Decision,
  type DecisionReason,
  type DecisionSource,
  type Finish,
} from './decision.js';
import { type DenyCache, repeatDenial } from './deny-cache.js';
import type { InFlight, Slot } from './in-flight.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import { createLocalBucket } from './local-bucket.js';
import { type Ending, PendingTake, type TakeWish } from './pending-take.js';
import { createPlaces } from './places.js';
import type { Recorder } from './recorder.js';
import { type Charge, chargeOf } from './refund-charge.js';
import type { ServiceTime } from './service-time.js';
import type { Shares } from './shares.js';
import type { Stats } from './stats.js';
import type { Steps } from './steps.js';
import type { Taker } from './taker.js';
import type { Warn } from './warnings.js';

/** When to come back if Redis is away and nothing may be admitted without it. */
const CLOSED_RETRY_MS = 1_000;

export interface DeciderOptions {
  link: Link;
  taker: Taker;
  shares: Shares;
  view: InForceView;
  inFlight: InFlight;
  denials: DenyCache;
  blocks: Blocks;
  recorder: Recorder;
  serviceTime: ServiceTime;
  stats: Stats;
  clock: Clock;
  deadlineMs: number;
  warn: Warn;
  finish: Finish;
}

export interface Decider {
  decide(wish: TakeWish): Promise<Decision>;
  /** What a take of the smallest cost would meet; takes nothing and is not counted. */
  peek(subject: string | null, onRedisError: OnRedisError): Promise<Decision>;
  /** The steps of a take, for who decides several limiters at once. */
  readonly steps: Steps;
}

export function createDecider(options: DeciderOptions): Decider {
  const { link, taker, shares, view, inFlight, recorder, stats, clock, warn, denials, blocks } =
    options;
  const local = createLocalBucket(view);
  const places = createPlaces(options);

  function decide(wish: TakeWish): Promise<Decision> {
    const startedMs = clock.monotonicMs();
    recorder.offered();
    const denial = link.up ? denials.find(wish, startedMs) : null;
    if (denial) {
      const decision = repeatDenial(denial, wish.subject, startedMs);
      return Promise.resolve(record(decision, wish, startedMs, startedMs));
    }
    const place = inFlight.reports ? places.reserve(startedMs) : null;
    if (place !== 'stale') return decideAt(place, wish, startedMs);
    return places
      .reserveLate(startedMs, wish.onRedisError)
      .then((late) => decideLate(late, wish, startedMs));
  }

  /** The signal may have said stop while the place was asked for: nothing has been taken yet. */
  function decideLate(place: Slot | 'full' | 'away', wish: TakeWish, startedMs: number) {
    if (wish.signal?.aborted !== true) return decideAt(place, wish, startedMs);
    if (typeof place === 'object') inFlight.release(place);
    throw wish.signal.reason;
  }

  function decideAt(
    slot: Slot | null | 'full' | 'away',
    wish: TakeWish,
    startedMs: number,
  ): Promise<Decision> {
    if (slot === 'full' || slot === 'away') {
      return Promise.resolve(record(refuseCap(slot, wish), wish, startedMs));
    }
    if (!link.up) return Promise.resolve(record(without(wish, slot), wish, startedMs));
    const left = blocks.take(wish, startedMs);
    if (left < 0) return ask(wish, slot, startedMs, true);
    const from = fromBlock(wish, left, view.current!, options.finish, startedMs, slot);
    return Promise.resolve(record(from, wish, startedMs, startedMs));
  }

  function ask(
    wish: TakeWish,
    slot: Slot | null,
    startedMs: number,
    counted: boolean,
  ): Promise<Decision> {
    return new Promise((ok, no) => {
      const pending = new PendingTake(wish, slot, startedMs, counted, ending, ok, no);
      taker.take(pending, startedMs + options.deadlineMs);
    });
  }

  const ending: Ending = {
    decide({ wish, slot, startedMs, counted }, answer, inForce, nowMs, reply) {
      if (answer?.allowed === false && counted && inForce && inForce === view.current) {
        denials.learn(wish, answer, inForce, startedMs);
      }
      const decision =
        answer && inForce
          ? fromRedis(answer, inForce, wish, slot, nowMs, reply)
          : without(wish, slot);
      return counted ? record(decision, wish, startedMs, nowMs) : decision;
    },
    drop({ slot }) {
      if (slot) inFlight.release(slot);
    },
  };

  function refuseCap(why: 'full' | 'away', wish: TakeWish): Decision {
    if (why === 'away') {
      return build(wish, false, false, 'redis_away', 0, CLOSED_RETRY_MS, 'closed', null);
    }
    shares.hungry();
    const source = link.up ? 'redis' : 'local';
    const hintMs = options.serviceTime.hintMs();
    const slot = view.shadow ? inFlight.force(clock.monotonicMs()) : null;
    return build(wish, view.shadow, false, 'in_flight', 0, hintMs, source, slot);
  }

  function fromRedis(
    answer: TakeAnswer,
    inForce: InForce,
    wish: TakeWish,
    slot: Slot | null,
    nowMs: number,
    reply: TakeReply | null = null,
  ): Decision {
    const { allowed, reason, remaining, retryAfterMs } = answer;
    if (allowed) local.spend(wish.cost, nowMs);
    else if (reason === 'bad_cost') throw costRefused(wish.cost);
    else if (reason === 'breaker_open') view.seeOpen(retryAfterMs, nowMs);
    else if (reason === 'cost_exceeds_capacity') {
      warn(
        'FLYBALL_W_COST_EXCEEDS_CAPACITY',
        `a take of cost ${wish.cost} can never pass: the capacity in force is ${inForce.capacity}. Raise the policy's capacity, or take less at once.`,
      );
    }
    const admits = allowed || inForce.mode === 'shadow';
    const source = inForce.managed ? 'redis' : 'unmanaged';
    return build(
      wish,
      admits,
      allowed,
      reason,
      remaining,
      retryAfterMs,
      source,
      slot,
      inForce,
      inForce.mode === 'shadow' ? 0 : answer.delayMs,
      nowMs,
      allowed ? chargeOf(wish.cost, inForce, reply, answer.shared) : null,
    );
  }

  /** Redis did not answer in time: shadow and off admit; else the caller's choice. */
  function without(wish: TakeWish, slot: Slot | null): Decision {
    if (view.mode === 'off' || view.shadow || wish.onRedisError === 'open') {
      return build(wish, true, true, 'ok', 0, 0, 'open', slot);
    }
    if (wish.onRedisError === 'closed') {
      return build(wish, false, false, 'redis_away', 0, CLOSED_RETRY_MS, 'closed', slot);
    }
    const nowMs = clock.monotonicMs();
    const { allowed, reason, remaining, retryAfterMs } = local.take(wish.subject, wish.cost, nowMs);
    const source = view.unknown ? 'open' : 'local';
    return build(wish, allowed, allowed, reason, remaining, retryAfterMs, source, slot);
  }

  /** A denial gives its place in flight back. */
  function build(
    wish: TakeWish,
    allowed: boolean,
    wouldAllow: boolean,
    reason: DecisionReason,
    remaining: number,
    retryAfterMs: number | null,
    source: DecisionSource,
    slot: Slot | null,
    basis: Basis = view.current ?? NOTHING_KNOWN,
    delayMs = 0,
    nowMs = clock.monotonicMs(),
    charge: Charge | null = source === 'local' ? chargeOf(wish.cost) : null,
  ): Decision {
    if (slot && !allowed) inFlight.release(slot);
    const finish = allowed && wish.cost > 0 ? options.finish : null;
    const waitMs = wouldAllow ? 0 : retryAfterMs;
    return new Decision(
      allowed,
      wouldAllow,
      reason,
      remaining,
      waitMs,
      source,
      wish.subject,
      basis,
      finish,
      nowMs,
      slot,
      delayMs,
      charge,
    );
  }

  function record(decision: Decision, wish: TakeWish, since: number, nowMs = clock.monotonicMs()) {
    if (decision.allowed) recorder.admitted();
    else recorder.denied(decision.reason);
    if (decision.allowed && !decision.wouldAllow) recorder.wouldDeny(decision.reason);
    stats.decided(decision, wish, nowMs - since);
    return decision;
  }

  return {
    decide,
    steps: { places, local, fromRedis, without, refuseCap, record },
    peek(subject, onRedisError) {
      const wish: TakeWish = { ...PEEK, subject, onRedisError };
      if (!link.up) return Promise.resolve(without(wish, null));
      return ask(wish, null, clock.monotonicMs(), false);
    },
  };
}

const PEEK = { cost: 0, priority: 'default', signal: undefined } as const;
const NOTHING_KNOWN: Basis = { revision: 0, epoch: 0, state: 'closed', generation: 0 };
