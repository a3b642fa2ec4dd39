/** Takes that a rollout has not reached: admitted, the would-be answer taken from the shadow's buckets. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { InForce, TakeAnswer, TakeReply } from '../redis/calls.js';
import type { LimiterKeys } from '../redis/keys.js';
import type { KeyFinder } from './address.js';
import { costRefused } from './arguments.js';
import type { Decider } from './decider.js';
import { type Basis, Decision, type DecisionReason, type Finish } from './decision.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import { type Ending, PendingTake, type TakeWish } from './pending-take.js';
import type { Recorder } from './recorder.js';
import { type Charge, chargeOf, nothingCharged, plainCharge } from './refund-charge.js';
import type { Reach } from './rollout.js';
import type { Stats } from './stats.js';
import type { Taker } from './taker.js';

export interface RolloutOptions {
  /** undefined: not read yet; null: enforced for all. */
  adopted: { readonly rollout: Reach | null | undefined; firstRead(): Promise<void> };
  /** Its calls go to the shadow's keys: `shadowKeys`. */
  taker: Taker;
  link: Link;
  view: InForceView;
  recorder: Recorder;
  stats: Stats;
  clock: Clock;
  deadlineMs: number;
  finish: Finish;
}

/** The steps of a take that a rollout may not have reached, for who decides several limiters at once. */
export interface RolloutDecider extends Decider {
  reaches(subject: string | null): boolean;
  readonly apart: {
    fromRedis(answer: TakeAnswer, inForce: InForce, wish: TakeWish, nowMs: number): Decision;
    unknown(wish: TakeWish, nowMs: number): Decision;
  };
}

/** `enforced` for whom the rollout has reached; without a rollout it costs one comparison. */
export function withRollout(enforced: Decider, options: RolloutOptions): RolloutDecider {
  const { adopted, taker, link, view, recorder, stats, clock, finish } = options;

  function decide(wish: TakeWish): Promise<Decision> {
    const { rollout } = adopted;
    if (rollout === null) return enforced.decide(wish);
    if (rollout === undefined) return decideEarly(wish);
    return rollout.reaches(wish.subject) ? enforced.decide(wish) : decideApart(wish);
  }

  /** The first takes of a process wait for nothing; but none is denied before it is known whom it is enforced for. */
  async function decideEarly(wish: TakeWish): Promise<Decision> {
    const known = adopted.firstRead();
    const decision = await enforced.decide(wish);
    if (decision.allowed) return decision;
    await known;
    if (reaches(wish.subject)) return decision;
    const { reason, remaining, retryAfterMs } = decision;
    return build(wish, false, reason, remaining, retryAfterMs, decision, clock.monotonicMs());
  }

  function decideApart(wish: TakeWish): Promise<Decision> {
    const startedMs = clock.monotonicMs();
    recorder.offered();
    if (link.up) return ask(wish, startedMs, true);
    return Promise.resolve(record(unknown(wish, startedMs), wish, startedMs, startedMs));
  }

  function ask(wish: TakeWish, startedMs: number, counted: boolean): Promise<Decision> {
    return new Promise((ok, no) => {
      // No place in flight: the cap binds, and is filled by, those alone for whom the limiter is enforced.
      const pending = new PendingTake(wish, null, startedMs, counted, ending, ok, no);
      taker.take(pending, startedMs + options.deadlineMs);
    });
  }

  const ending: Ending = {
    decide({ wish, startedMs, counted }, answer, inForce, nowMs, reply) {
      if (answer?.reason === 'bad_cost') throw costRefused(wish.cost);
      const decision =
        answer && inForce ? fromRedis(answer, inForce, wish, nowMs, reply) : unknown(wish, nowMs);
      return counted ? record(decision, wish, startedMs, nowMs) : decision;
    },
    drop() {},
  };

  function fromRedis(
    { allowed, reason, remaining, retryAfterMs, shared }: TakeAnswer,
    inForce: InForce,
    wish: TakeWish,
    nowMs: number,
    reply: TakeReply | null = null,
  ): Decision {
    const { cost, subject } = wish;
    // A person's word on one subject waits for no rollout.
    if (reason === 'blocked' && inForce.mode !== 'shadow') {
      const source = inForce.managed ? 'redis' : 'unmanaged';
      return new Decision(
        false,
        false,
        reason,
        remaining,
        retryAfterMs,
        source,
        subject,
        inForce,
        null,
        nowMs,
        null,
      );
    }
    const charge = allowed
      ? { ...(chargeOf(cost, inForce, reply, shared) ?? plainCharge()), shadow: true }
      : null;
    return build(wish, allowed, reason, remaining, retryAfterMs, inForce, nowMs, charge);
  }

  /** Redis did not answer: what it would have said is not known, so nothing is said against the take. */
  function unknown(wish: TakeWish, nowMs: number): Decision {
    const basis = view.current ?? NOTHING_KNOWN;
    return build(wish, true, 'ok', 0, 0, basis, nowMs, nothingCharged());
  }

  function build(
    wish: TakeWish,
    wouldAllow: boolean,
    reason: DecisionReason,
    remaining: number,
    retryAfterMs: number | null,
    basis: Basis,
    nowMs: number,
    charge: Charge | null = null,
  ): Decision {
    const waitMs = wouldAllow ? 0 : retryAfterMs;
    const end = wish.cost > 0 ? finish : null;
    return new Decision(
      true,
      wouldAllow,
      reason,
      remaining,
      waitMs,
      'shadow',
      wish.subject,
      basis,
      end,
      nowMs,
      null,
      0,
      charge,
    );
  }

  function record(decision: Decision, wish: TakeWish, sinceMs: number, nowMs: number): Decision {
    if (!decision.allowed) recorder.denied(decision.reason);
    else {
      recorder.admitted();
      if (!decision.wouldAllow) recorder.wouldDeny(decision.reason);
    }
    stats.decided(decision, wish, nowMs - sinceMs);
    return decision;
  }

  const reaches = (subject: string | null) => adopted.rollout?.reaches(subject) ?? true;

  return {
    decide,
    steps: enforced.steps,
    reaches,
    apart: { fromRedis, unknown },
    peek(subject, onRedisError) {
      if (reaches(subject)) return enforced.peek(subject, onRedisError);
      const wish: TakeWish = { ...PEEK, subject, onRedisError };
      const nowMs = clock.monotonicMs();
      return link.up ? ask(wish, nowMs, false) : Promise.resolve(unknown(wish, nowMs));
    },
  };
}

const PEEK = { cost: 0, priority: 'default', signal: undefined } as const;
const NOTHING_KNOWN: Basis = { revision: 0, epoch: 0, state: 'closed', generation: 0 };

/** The same limiter with the shadow's buckets in place of its own: takes by these keys touch nothing enforced. */
export function shadowKeys(finder: KeyFinder): KeyFinder {
  let own: LimiterKeys | null = null;
  let apart: LimiterKeys;
  function of(keys: LimiterKeys): LimiterKeys {
    if (keys !== own) {
      own = keys;
      apart = {
        ...keys,
        bucket: keys.shadowBucket,
        subjectBucket: keys.shadowSubjectBucket,
        taken: (kind, subject) => keys.taken(kind, subject, true),
        crowd: (kind) => keys.crowd(kind, true),
        owed: () => keys.owed(true),
      };
    }
    return apart;
  }
  return {
    get keys() {
      const { keys } = finder;
      return keys && of(keys);
    },
    find: async () => of(await finder.find()),
  };
}
