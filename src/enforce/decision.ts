/** The answer to one take: what, why, until when; and the place to report how the request ended. Stage: enforce. */
import { FlyballError, FlyballTypeError } from '../errors.js';
import type { InForce, TakeReason } from '../redis/calls.js';
import type { LimiterState } from '../redis/params.js';
import { show } from './arguments.js';
import type { Slot } from './in-flight.js';
import type { Outcome, OutcomeInfo } from './recorder.js';
import { NOTHING_TAKEN, type Refund, type Refunder } from './refund-answer.js';
import { type Charge, plainCharge } from './refund-charge.js';

/**
 * Why. Beside the reasons of the script: `in_flight` (this process's part of the cap is used up) and
 * `redis_away` (Redis did not answer in time and `onRedisError` is `closed`).
 */
export type DecisionReason = TakeReason | 'in_flight' | 'redis_away';

/** Which limit denied; null on admission. */
export type LimitName = 'rate' | 'subject' | 'in_flight' | 'breaker' | 'reserve' | 'cost' | 'redis';

/**
 * Who decided: `redis` by the params in force; `block`: this process, from tokens that it drew from Redis a moment ago;
 * `cached`: this process, repeating a denial of Redis that still holds; `unmanaged` Redis, by numbers passed along since there are no params; `local`, `open`, `closed` without Redis;
 * `shadow`: nobody, since the rollout has not reached this subject, and `wouldAllow` tells what enforcement had said.
 */
export type DecisionSource =
  | 'redis'
  | 'block'
  | 'cached'
  | 'unmanaged'
  | 'local'
  | 'open'
  | 'closed'
  | 'shadow';

export interface TakeDecision {
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  readonly limit: LimitName | null;
  /** Whole tokens left in the tighter of the buckets. */
  readonly remaining: number;
  /** ms until the same take could pass; null when it never can, or nobody knows. 0 on admission. */
  readonly retryAfterMs: number | null;
  /** ms until an admitted take may proceed: above 0 only under a leaky bucket, which paces. `run` waits for it. */
  readonly delayMs: number;
  readonly revision: number;
  readonly epoch: number;
  readonly state: LimiterState;
  /** The breaker's generation at admission: an outcome of an older one is ignored. */
  readonly generation: number;
  readonly source: DecisionSource;
  /** Shadow mode: what enforcement would have answered. Else equal to `allowed`. */
  readonly wouldAllow: boolean;
  readonly subject: string | null;
  /**
   * For code deeper down that knows the error code, the upstream or the database wait: reported with `done`,
   * and leading over what is given there (middleware and `run` only know that it failed).
   */
  note(info: OutcomeInfo): void;
  /** The request has ended. Call it once; later calls change nothing. On a denial it does nothing. */
  done(outcome?: Outcome, info?: OutcomeInfo): void;
  /**
   * Names what was taken, for `limiter.refund` in any process of yours; null when nothing was taken in Redis. A text of
   * letters and digits that holds the subject: who has it can give the tokens back, so it is not for clients.
   */
  readonly id: string | null;
  /** Gives back what was taken: once, within an hour, never above the capacity. Never rejects. */
  refund(): Promise<Refund>;
}

/** What of the numbers in force a decision carries. */
export type Basis = Pick<InForce, 'revision' | 'epoch' | 'state' | 'generation'>;

/** Told when an admitted request ends; and who gives back what it took. */
export interface Finish {
  (
    outcome: Outcome,
    info: OutcomeInfo | undefined,
    generation: number,
    startedMs: number,
    slot: Slot | null,
    decision: Decision,
  ): void;
  readonly refunds?: Refunder;
}

const LIMIT_OF: Partial<Record<DecisionReason, LimitName>> = {
  rate: 'rate',
  subject: 'subject',
  in_flight: 'in_flight',
  breaker_open: 'breaker',
  probe_budget: 'breaker',
  reserve: 'reserve',
  fair_share: 'rate',
  cost_exceeds_capacity: 'cost',
  blocked: 'subject',
  redis_away: 'redis',
};

/** The limit that a reason of denial names. */
export function limitOf(reason: DecisionReason): LimitName | null {
  return LIMIT_OF[reason] ?? null;
}

export class Decision implements TakeDecision {
  readonly allowed: boolean;
  readonly wouldAllow: boolean;
  readonly reason: DecisionReason;
  readonly remaining: number;
  readonly retryAfterMs: number | null;
  readonly delayMs: number;
  readonly revision: number;
  readonly epoch: number;
  readonly state: LimiterState;
  readonly generation: number;
  readonly source: DecisionSource;
  readonly subject: string | null;
  /** null: nothing was admitted. */
  readonly #finish: Finish | null;
  #ended = false;
  #charge: Charge | null;
  readonly #startedMs: number;
  readonly #slot: Slot | null;
  #info: OutcomeInfo | undefined = undefined;

  /** Positions, not an object: this is made on every request. */
  constructor(
    allowed: boolean,
    wouldAllow: boolean,
    reason: DecisionReason,
    remaining: number,
    retryAfterMs: number | null,
    source: DecisionSource,
    subject: string | null,
    basis: Basis,
    finish: Finish | null,
    startedMs: number,
    slot: Slot | null,
    delayMs = 0,
    charge: Charge | null = null,
  ) {
    this.allowed = allowed;
    this.wouldAllow = wouldAllow;
    this.reason = reason;
    this.remaining = remaining;
    this.retryAfterMs = retryAfterMs;
    this.revision = basis.revision;
    this.epoch = basis.epoch;
    this.state = basis.state;
    this.generation = basis.generation;
    this.source = source;
    this.subject = subject;
    this.#finish = finish;
    this.delayMs = delayMs;
    // What waits to proceed is not under way yet.
    this.#startedMs = startedMs + delayMs;
    this.#slot = slot;
    this.#charge = charge;
  }

  get limit(): LimitName | null {
    return this.wouldAllow ? null : limitOf(this.reason);
  }

  note(info: OutcomeInfo): void {
    this.#info = this.#info === undefined ? { ...info } : Object.assign(this.#info, info);
  }

  done(outcome: Outcome = 'ok', info?: OutcomeInfo): void {
    const finish = this.#finish;
    if (finish === null || this.#ended) return;
    if (
      outcome !== 'ok' &&
      outcome !== 'failed' &&
      outcome !== 'timed_out' &&
      outcome !== 'cancelled'
    ) {
      throw new FlyballTypeError(
        'FLYBALL_E_ENFORCE_OUTCOME',
        `outcome is ${show(outcome)}. Use 'ok', 'failed', 'timed_out' or 'cancelled'.`,
      );
    }
    let all = info;
    if (this.#info !== undefined) all = info ? { ...info, ...this.#info } : this.#info;
    this.#ended = true;
    finish(outcome, all, this.generation, this.#startedMs, this.#slot, this);
  }

  get id(): string | null {
    return this.#finish?.refunds?.idOf(this) ?? null;
  }

  async refund(): Promise<Refund> {
    return this.#finish?.refunds?.refund(this) ?? NOTHING_TAKEN;
  }

  /** For refunds: what was taken; made for a plain take only when asked for. */
  charge(): Charge {
    this.#charge ??= plainCharge();
    this.#charge.atMs ??= this.#startedMs - this.delayMs;
    return this.#charge;
  }
}

/** `run` was denied: nothing was called. */
export class FlyballDeniedError extends FlyballError {
  override readonly name = 'FlyballDeniedError';
  readonly decision: TakeDecision;

  constructor(limiter: string, decision: TakeDecision) {
    const again =
      decision.retryAfterMs === null
        ? ''
        : ` It can pass in ${Math.ceil(decision.retryAfterMs)} ms.`;
    super('FLYBALL_E_ENFORCE_DENIED', `limiter ${limiter} denied: ${decision.reason}.${again}`);
    this.decision = decision;
  }
}
