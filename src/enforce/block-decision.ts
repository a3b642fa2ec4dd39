/** The decision on a take that tokens drawn earlier admit. Stage: enforce. */
import { type Basis, Decision, type Finish } from './decision.js';
import type { Slot } from './in-flight.js';
import type { TakeWish } from './pending-take.js';
import { chargeOf } from './refund-charge.js';

/** `left`: whole tokens, as far as this process knows. */
export function fromBlock(
  wish: TakeWish,
  left: number,
  basis: Basis,
  finish: Finish,
  nowMs: number,
  slot: Slot | null,
): Decision {
  const { cost, subject } = wish;
  const charge = chargeOf(cost);
  return new Decision(
    true,
    true,
    'ok',
    left,
    0,
    'block',
    subject,
    basis,
    finish,
    nowMs,
    slot,
    0,
    charge,
  );
}
