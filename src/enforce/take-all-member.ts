/** One limiter of a set: its place in flight, its verdict, and what is taken back when another denies. Stage: enforce. */
import type { InForce, TakeAnswer } from '../redis/calls.js';
import { Decision } from './decision.js';
import type { Slot } from './in-flight.js';
import type { LimiterParts } from './limiter-parts.js';
import type { TakeWish } from './pending-take.js';
import type { Member } from './take-all-apart.js';

/** What one limiter of a set holds and says while the others are asked. */
export interface Held {
  slot: Slot | null;
  /** In shadow there is no cap, but it is told that there would have been. */
  overCap: boolean;
}

/** A place in flight, or the denial of who has none. */
export async function placeOf(
  member: LimiterParts,
  wish: TakeWish,
  startedMs: number,
): Promise<Held | Decision> {
  const { inFlight, decider, view, clock } = member;
  if (!inFlight.reports) return { slot: null, overCap: false };
  const { places, refuseCap } = decider.steps;
  let place: Slot | 'full' | 'stale' | 'away' = places.reserve(startedMs);
  if (place === 'stale') place = await places.reserveLate(startedMs, wish.onRedisError);
  if (place === 'full' && view.shadow) {
    return { slot: inFlight.force(clock.monotonicMs()), overCap: true };
  }
  if (place === 'full' || place === 'away') return refuseCap(place, wish);
  return { slot: place as Slot, overCap: false };
}

/** Does this limiter stand in nobody's way? A block binds before the rollout has come. */
export function admits(member: Member, answer: TakeAnswer, inForce: InForce): boolean {
  if (answer.allowed || inForce.mode === 'shadow') return true;
  return member.apart === true && answer.reason !== 'blocked';
}

/** What Redis said of this limiter; `all`: every limiter of the set admits. */
export function verdictOf(
  member: Member,
  wish: TakeWish,
  held: Held,
  said: { answer: TakeAnswer; inForce: InForce; all: boolean; startedMs: number },
): Decision {
  const { answer, inForce, all, startedMs } = said;
  const { view, denials, decider, clock } = member;
  if (!answer.allowed && inForce === view.current) denials.learn(wish, answer, inForce, startedMs);
  if (!all && admits(member, answer, inForce)) {
    return bystander(member, held, {
      ...inForce,
      ...answer,
      wouldAllow: answer.allowed,
      source: member.apart ? 'shadow' : inForce.managed ? 'redis' : 'unmanaged',
      subject: wish.subject,
    });
  }
  return decider.steps.fromRedis(answer, inForce, wish, held.slot, clock.monotonicMs());
}

/** Admitted here, but another limiter denies: nothing is held, nothing will be reported. */
export function bystander(
  { inFlight, clock }: LimiterParts,
  held: Held | null,
  said: Pick<
    Decision,
    | 'wouldAllow'
    | 'reason'
    | 'remaining'
    | 'retryAfterMs'
    | 'source'
    | 'subject'
    | 'revision'
    | 'epoch'
    | 'state'
    | 'generation'
  >,
): Decision {
  if (held?.slot) inFlight.release(held.slot);
  const { wouldAllow, reason, remaining, retryAfterMs, source, subject } = said;
  const nowMs = clock.monotonicMs();
  return new Decision(
    true,
    wouldAllow,
    reason,
    remaining,
    retryAfterMs,
    source,
    subject,
    said,
    null,
    nowMs,
    null,
  );
}

/** In shadow, admitted beyond the cap: the same decision, saying so. */
export function overCap(member: LimiterParts, held: Held, decision: Decision): Decision {
  const { serviceTime, finish, clock } = member;
  return new Decision(
    true,
    false,
    'in_flight',
    0,
    serviceTime.hintMs(),
    decision.source,
    decision.subject,
    decision,
    finish,
    clock.monotonicMs(),
    held.slot,
  );
}
