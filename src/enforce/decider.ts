/** One take from request to decision: a place in flight first, then tokens from Redis, or without it. Stage: enforce. */
import type { Clock } from '../clock.js';
import { FlyballTypeError } from '../errors.js';
import type { Priority } from '../redis/calls.js';
import type { OnRedisError } from './arguments.js';
import {
  type Basis,
  Decision,
  type DecisionReason,
  type DecisionSource,
  type Finish,
} from './decision.js';
import type { InFlight, Slot } from './in-flight.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import { createLocalBucket } from './local-bucket.js';
import type { Recorder } from './recorder.js';
import type { ServiceTime } from './service-time.js';
import type { Shares } from './shares.js';
import type { Stats } from './stats.js';
import type { Answered, Taker } from './taker.js';
import type { Warn } from './warnings.js';

/** When to come back if Redis is away and nothing may be admitted without it. */
const CLOSED_RETRY_MS = 1_000;

export interface TakeWish {
  subject: string | null;
  cost: number;
  priority: Priority;
  onRedisError: OnRedisError;
  signal: AbortSignal | undefined;
}

export interface DeciderOptions {
  link: Link;
  taker: Taker;
  shares: Shares;
  view: InForceView;
  inFlight: InFlight;
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
}

export function createDecider(options: DeciderOptions): Decider {
  const { link, taker, shares, view, inFlight, recorder, stats, clock, warn } = options;
  const local = createLocalBucket(view);

  async function decide(wish: TakeWish): Promise<Decision> {
    const startedMs = clock.monotonicMs();
    recorder.offered();
    const place = inFlight.reports ? reserve(startedMs) : null;
    const slot = place === 'stale' ? await reserveLate(startedMs, wish.onRedisError) : place;
    if (slot === 'full' || slot === 'away') return record(refuseCap(slot, wish), startedMs);
    try {
      const answered = link.up
        ? await taker.take(wish, startedMs + options.deadlineMs, wish.signal)
        : null;
      return record(answered ? fromRedis(answered, wish, slot) : without(wish, slot), startedMs);
    } catch (error) {
      if (slot) inFlight.release(slot);
      throw error;
    }
  }

  /** Off admits all, and shadow answers as if there were no cap. */
  function reserve(nowMs: number): Slot | 'full' | 'stale' {
    return view.mode === 'off' ? inFlight.force(nowMs) : inFlight.reserve(nowMs);
  }

  async function reserveLate(
    startedMs: number,
    onRedisError: OnRedisError,
  ): Promise<Slot | 'full' | 'away'> {
    if (link.up) await shares.refresh(startedMs + options.deadlineMs);
    const nowMs = clock.monotonicMs();
    const place = reserve(nowMs);
    if (place !== 'stale') return place;
    if (onRedisError === 'open' || view.shadow) return inFlight.force(nowMs);
    if (onRedisError === 'closed') return 'away';
    return inFlight.reserveWithin(lastShare(), nowMs);
  }

  /** `local` keeps the last share; before the first, an even part of the cap that was last seen or given. */
  function lastShare(): number {
    if (!Number.isNaN(inFlight.share)) return inFlight.share;
    const cap = view.fallback().inFlightMax;
    return cap > 0 ? Math.max(1, Math.floor(cap / view.processes)) : Number.POSITIVE_INFINITY;
  }

  function refuseCap(why: 'full' | 'away', wish: TakeWish): Decision {
    if (why === 'away') return denied(wish, 'redis_away', 'closed', CLOSED_RETRY_MS);
    shares.hungry();
    const source = link.up ? 'redis' : 'local';
    const retryAfterMs = options.serviceTime.hintMs();
    if (!view.shadow) return denied(wish, 'in_flight', source, retryAfterMs);
    const slot = inFlight.force(clock.monotonicMs());
    return build(wish, true, false, 'in_flight', 0, retryAfterMs, source, slot);
  }

  function fromRedis({ answer, inForce }: Answered, wish: TakeWish, slot: Slot | null): Decision {
    const { allowed, reason, remaining, retryAfterMs } = answer;
    const nowMs = clock.monotonicMs();
    if (allowed) local.spend(wish.cost, nowMs);
    else if (reason === 'bad_cost') throw badCost(wish.cost);
    else if (reason === 'breaker_open') view.seeOpen(retryAfterMs, nowMs);
    else if (reason === 'cost_exceeds_capacity') {
      warn(
        'FLYBALL_W_COST_EXCEEDS_CAPACITY',
        `a take of cost ${wish.cost} can never pass: the capacity in force is ${inForce.capacity}. Raise the policy's capacity, or take less at once.`,
      );
    }
    const admits = allowed || inForce.mode === 'shadow';
    const source = inForce.managed ? 'redis' : 'unmanaged';
    return build(wish, admits, allowed, reason, remaining, retryAfterMs, source, slot, inForce);
  }

  /** Redis did not answer in time: shadow and off admit; else the caller's choice. */
  function without(wish: TakeWish, slot: Slot | null): Decision {
    if (view.mode === 'off' || view.shadow || wish.onRedisError === 'open') {
      return build(wish, true, true, 'ok', 0, 0, 'open', slot);
    }
    if (wish.onRedisError === 'closed') {
      return build(wish, false, false, 'redis_away', 0, CLOSED_RETRY_MS, 'closed', slot);
    }
    const { allowed, reason, remaining, retryAfterMs } = local.take(
      wish.subject,
      wish.cost,
      clock.monotonicMs(),
    );
    const source = view.unknown ? 'open' : 'local';
    return build(wish, allowed, allowed, reason, remaining, retryAfterMs, source, slot);
  }

  function denied(
    wish: TakeWish,
    reason: DecisionReason,
    source: DecisionSource,
    retryAfterMs: number | null,
  ): Decision {
    return build(wish, false, false, reason, 0, retryAfterMs, source, null);
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
  ): Decision {
    if (slot && !allowed) inFlight.release(slot);
    const finish = allowed && wish.cost > 0 ? options.finish : null;
    const waitMs = wouldAllow ? 0 : retryAfterMs;
    const nowMs = clock.monotonicMs();
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
    );
  }

  function record(decision: Decision, startedMs: number): Decision {
    if (decision.allowed) recorder.admitted();
    else recorder.denied(decision.reason);
    if (decision.allowed && !decision.wouldAllow) recorder.wouldDeny(decision.reason);
    stats.decided(decision, clock.monotonicMs() - startedMs);
    return decision;
  }

  return {
    decide,
    async peek(subject, onRedisError) {
      const wish = {
        subject,
        cost: 0,
        priority: 'default',
        onRedisError,
        signal: undefined,
      } as const;
      const answered = link.up
        ? await taker.take(wish, clock.monotonicMs() + options.deadlineMs)
        : null;
      return answered ? fromRedis(answered, wish, null) : without(wish, null);
    },
  };
}

const NOTHING_KNOWN: Basis = { revision: 0, epoch: 0, state: 'closed', generation: 0 };

function badCost(cost: number): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_COST',
    `Redis refused the cost ${cost}. Use a number > 0 with at most 6 decimals.`,
  );
}
