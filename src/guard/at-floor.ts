/** The least that the bounds allow, and still overloaded: counted, and said. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import { overloadOf } from '../decide/overload.js';
import type { Decision, GuardMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/** So many ticks at the floor are worth a word. */
export const AT_FLOOR_TICKS = 10;

/** Ticks at the floor so far. A tick without fresh evidence counts neither way. */
export function atFloorTicks(
  policy: Policy,
  memory: GuardMemory,
  sample: Sample,
  decision: Pick<Decision, 'state' | 'rate' | 'inFlightMax'>,
): number {
  if (decision.state !== 'closed' || policy.control.law === 'fixed') return 0;
  if (sample.inForce.held !== 'none') return 0;
  const { fresh, z } = overloadOf(policy, sample);
  if (!fresh || !sample.traffic.fresh) return memory.atFloorTicks;
  const bounds = boundsOf(policy);
  const capAtFloor = bounds.inFlight !== null && decision.inFlightMax <= bounds.inFlight.min;
  const atFloor = capAtFloor || decision.rate <= bounds.rate.min;
  return z > 0 && atFloor ? Math.min(1_000_000, memory.atFloorTicks + 1) : 0;
}

/** Says it in place of a reason that would hide it; a cut or a raise keeps its own. Fills in what it is given. */
export function sayAtFloor(decision: Decision, ticks: number): void {
  decision.terms.atFloorTicks = ticks;
  if (ticks <= AT_FLOOR_TICKS) return;
  if (decision.reason === 'steady') decision.reason = 'at_floor';
  decision.why += `; at the least that the bounds allow for ${ticks} ticks, and still above the setpoint`;
}
