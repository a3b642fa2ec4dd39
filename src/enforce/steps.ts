/** The steps of a take, for who decides several limiters at once. Stage: enforce. */
import type { InForce, TakeAnswer, TakeReply } from '../redis/calls.js';
import type { Decision } from './decision.js';
import type { Slot } from './in-flight.js';
import type { LocalBucket } from './local-bucket.js';
import type { TakeWish } from './pending-take.js';
import type { Places } from './places.js';

export interface Steps {
  places: Places;
  local: LocalBucket;
  fromRedis(
    answer: TakeAnswer,
    inForce: InForce,
    wish: TakeWish,
    slot: Slot | null,
    nowMs: number,
    reply?: TakeReply | null,
  ): Decision;
  without(wish: TakeWish, slot: Slot | null): Decision;
  refuseCap(why: 'full' | 'away', wish: TakeWish): Decision;
  record(decision: Decision, wish: TakeWish, startedMs: number, nowMs?: number): Decision;
}
