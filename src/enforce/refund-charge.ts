/** What an admitted take took, kept only where it is more than one token of a plain bucket. Stage: enforce. */
import type { AlgorithmTerms } from '../redis/algorithms.js';
import type { InForce, TakeReply } from '../redis/calls.js';

export interface Charge {
  readonly cost: number;
  /** Redis time of the take, where its window asks for it; null: about `atMs`. */
  readonly atUs: number | null;
  /** Monotonic time of the answer; null until asked for. */
  atMs: number | null;
  /** undefined: the token bucket. */
  readonly terms: AlgorithmTerms | undefined;
  /** It was taken from the shadow's keys. */
  readonly shadow: boolean;
  /** The bucket that subjects past the most share stood in: the subject's own owes nothing for it. */
  readonly shared: boolean;
  /** Its name for refunds, once the decision's id was read. */
  mark: string | null;
  /** Given back when the request ended. */
  returned: boolean;
}

/** null: one token of a bucket, as most takes. */
export function chargeOf(
  cost: number,
  inForce?: InForce,
  reply: TakeReply | null = null,
  shared = false,
): Charge | null {
  const shadow = inForce?.mode === 'shadow';
  if (cost === 1 && !shadow && !shared && reply?.terms === undefined) return null;
  const atUs = reply?.terms === undefined ? null : reply.nowUs;
  const terms = reply?.terms;
  return { cost, atUs, atMs: null, terms, shadow, shared, mark: null, returned: false };
}

/** It was admitted without asking: there is nothing to give back. */
export function nothingCharged(): Charge {
  return { ...plainCharge(), cost: 0 };
}

export function plainCharge(): Charge {
  return {
    cost: 1,
    atUs: null,
    atMs: null,
    terms: undefined,
    shadow: false,
    shared: false,
    mark: null,
    returned: false,
  };
}
