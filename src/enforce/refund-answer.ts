/** What became of a refund, and who makes it. Stage: enforce. */
import type { RefundAnswer } from '../redis/refund.js';
import type { Decision } from './decision.js';

/**
 * Why nothing was given back. `already`: it was before. `too_late`: more than an hour after the take. `moved_on`: the
 * window in which it counted is over, or its bucket was emptied since (a trip, a reset, a rate of 0, another epoch).
 * `nothing_taken`: it was denied, or admitted without taking. `paced`: a leaky bucket, whose later takes have been told
 * their times. `redis_away`: no answer in time; ask again, it counts once.
 */
export type RefundRefusal =
  | Exclude<RefundAnswer, 'refunded'>
  | 'nothing_taken'
  | 'paced'
  | 'redis_away';

export type Refund = { refunded: true } | { refunded: false; why: RefundRefusal };

export const NOTHING_TAKEN: Refund = { refunded: false, why: 'nothing_taken' };

export interface Refunder {
  /** null: nothing was taken in Redis that could be given back. */
  idOf(decision: Decision): string | null;
  refund(decision: Decision): Promise<Refund>;
}
