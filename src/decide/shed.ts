/** A breaker that sheds in proportion: as much as the failures are above the level, and it feels its way back. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { BreakerMemory } from './breaker-types.js';
import { num, type Reason } from './reasons.js';
import { growth, resumeOf, share } from './slow-start.js';
import { countsOf, isCounting, type Passed } from './tripping.js';
import { type Trip, tripsOf } from './trips.js';
import type { Sample } from './types.js';

/** A rise smaller than this is left for later: the share of failures swings by itself. */
const RISE = 1.1;
const UNPROVEN = 'above the level, with too few answers to prove it';

/** What is taken away, 0 … 1, and why. */
interface Shed {
  part: number;
  why: string;
}

/** Does passing that level take away a part only? */
export function isShed(policy: Policy, { kind }: Trip): boolean {
  return policy.breaker?.shed === 'proportional' && kind === 'ratio';
}

/**
 *   part = (share − above) ÷ (1 − above)       0 at the level, all when all fail
 *
 * So as many are admitted as, at the share of failures that the level allows, would be answered well now. Null: it does
 * not shed, or no share has passed its level.
 */
export function shedPart(policy: Policy, sample: Sample, passed: readonly Passed[]): Shed | null {
  const worst = worstOf(policy, sample, passed);
  // What is not worth a change is not worth leaving `closed`.
  const least = sample.inForce.state === 'closed' ? policy.guards.deadBand : 0;
  return worst !== null && worst.part > least ? worst : null;
}

/** What answers too few to prove it say: nothing more is shed by it, and no more comes back than it leaves. */
export function unprovenPart(policy: Policy, sample: Sample): Shed | null {
  if (!isCounting(sample)) return null;
  const seen = tripsOf(policy).map((trip, i): Passed => {
    return { trip, counts: countsOf(sample.outcomes, i), why: UNPROVEN };
  });
  return worstOf(policy, sample, seen);
}

/** A person's values are kept: under a hold nothing is taken off them. */
function worstOf(policy: Policy, { inForce }: Sample, levels: readonly Passed[]): Shed | null {
  if (inForce.held !== 'none') return null;
  let worst: Shed | null = null;
  for (const { trip, counts, why } of levels) {
    if (!isShed(policy, trip) || counts.answers === 0) continue;
    const part = (counts.matching / counts.answers - trip.above) / (1 - trip.above);
    if (part > (worst?.part ?? 0)) worst = { part, why };
  }
  return worst;
}

/** Shedding goes down at once and up no faster than a slow start. */
export function shedDraft(
  policy: Policy,
  breaker: BreakerMemory,
  sample: Sample,
  { part, why }: Shed,
) {
  const { inForce, traffic } = sample;
  const full = resumeOf(breaker, sample);
  const now = { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };
  const reached = inForce.state === 'closed' || full.rate <= 0 ? 1 : now.rate / full.rate;
  const aim = share(policy, full, 1 - part);
  const most = share(policy, full, Math.min(1, Math.max(reached, 0.01) * growth(sample)));
  const lower = why !== UNPROVEN && aim.rate < now.rate * (1 - policy.guards.deadBand);
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
