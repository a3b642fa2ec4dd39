/** A breaker that sheds in proportion: as much as the failures are above the level, and it feels its way back. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { num, type Reason } from './reasons.js';
import { GROW, resumeOf, share } from './slow-start.js';
import { countsOf, isCounting, type Passed } from './tripping.js';
import { tripsOf } from './trips.js';
import type { BreakerMemory, Sample } from './types.js';

/** A rise smaller than this is left for later: the share of failures swings by itself. */
const RISE = 1.1;

function sheds(policy: Policy, { inForce }: Sample): boolean {
  // A person's values are kept: under a hold nothing is taken off them.
  return policy.breaker?.shed === 'proportional' && inForce.held === 'none';
}

/**
 *   part = (share − above) ÷ (1 − above)       0 at the level, all when all fail
 *
 * So as many are admitted as, at the share of failures that the level allows, would be answered well now. Null: it does
 * not shed, or no share has passed its level.
 */
export function shedPart(
  policy: Policy,
  sample: Sample,
  passed: readonly Passed[],
): { part: number; why: string } | null {
  if (!sheds(policy, sample)) return null;
  let worst: { part: number; why: string } | null = null;
  for (const { trip, counts, why } of passed) {
    if (trip.kind !== 'ratio') continue;
    const part = (counts.matching / counts.answers - trip.above) / (1 - trip.above);
    if (part > (worst?.part ?? 0)) worst = { part, why };
  }
  // What is not worth a change is not worth leaving `closed`.
  const least = sample.inForce.state === 'closed' ? policy.guards.deadBand : 0;
  return worst !== null && worst.part > least ? worst : null;
}

/** Shedding goes down at once and up no faster than a slow start. */
export function shedDraft(
  policy: Policy,
  breaker: BreakerMemory,
  sample: Sample,
  { part, why }: { part: number; why: string },
) {
  const { inForce, traffic } = sample;
  const full = resumeOf(breaker, sample);
  const now = { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };
  const reached = inForce.state === 'closed' || full.rate <= 0 ? 1 : now.rate / full.rate;
  const aim = share(policy, full, 1 - part);
  const seconds = Math.max(0, Math.min(sample.dtMs, 5000)) / 1000;
  const most = share(policy, full, Math.min(1, Math.max(reached, 0.01) * GROW ** seconds));
  const lower = aim.rate < now.rate * (1 - policy.guards.deadBand);
  const higher = aim.rate > now.rate * RISE && traffic.fresh && traffic.okRate > 0;
  const next = lower ? aim : higher && most.rate < aim.rate ? most : higher ? aim : now;
  const shed = full.rate > 0 ? 100 * (1 - next.rate / full.rate) : 0;
  return {
    ...next,
    state: 'recovering' as const,
    cause: 'breaker' as const,
    reason: 'breaker_shed' as Reason,
    why: `${why}: ${num(shed)} % are shed`,
    terms: { part, shed: shed / 100 },
  };
}

/** The way back leads to what held before anything was shed. */
export function afterShed(breaker: BreakerMemory, { inForce }: Sample): BreakerMemory {
  if (inForce.state !== 'closed') return breaker;
  const { rate, inFlightMax } = inForce.target;
  return { ...breaker, resume: { rate, inFlightMax } };
}

/** Too few answers to prove that it is still above the level, yet what they say is: wait. */
export function waitsToRise(policy: Policy, sample: Sample): boolean {
  if (!sheds(policy, sample) || !isCounting(sample)) return false;
  return tripsOf(policy).some((trip, i) => {
    const { answers, matching } = countsOf(sample.outcomes, i);
    return trip.kind === 'ratio' && answers > 0 && matching / answers > trip.above;
  });
}
