/** What a plan of policies stands on: what people and policies have said of a limiter, not what the law moves by the second. Pure. Stage: actuate. */
import { type ByPerson, parseByPerson } from '../../redis/by-person.js';
import { isActive } from '../../redis/effective.js';
import type { Mode, Params } from '../../redis/params.js';
import { moved, untilText } from './plan.js';

/** Plain JSON: a saved plan carries it, and people read it there. */
export interface Stood {
  epoch: number;
  revision: number;
  /** Hash of the adopted policy. */
  policy: string;
  mode: Mode;
  /** `pinned by ada@host (unverified) until …`; null: nobody holds it. */
  hold: string | null;
  /** `Rollout` as JSON; empty: for all. */
  rollout: string;
  byPerson: ByPerson;
  /** Where no law moves them; null in mode auto. */
  numbers: { rate: number; capacity: number; inFlightMax: number } | null;
}

export function stoodOf(params: Params, nowMs: number): Stood {
  const { epoch, revision, policyHash: policy, mode, rollout } = params;
  const { rate, capacity, inFlightMax } = params;
  return {
    ...{ epoch, revision, policy, mode, rollout },
    hold: holdText(params, nowMs),
    byPerson: parseByPerson(params.byPerson),
    numbers: mode === 'auto' ? null : { rate, capacity, inFlightMax },
  };
}

/** A pin leads over a freeze, as it does everywhere. */
function holdText(params: Params, nowMs: number): string | null {
  const { pinnedUntil, frozenUntil, heldBy } = params;
  if (isActive(pinnedUntil, nowMs)) return `pinned by ${heldBy} ${untilText(pinnedUntil)}`;
  if (isActive(frozenUntil, nowMs)) return `frozen by ${heldBy} ${untilText(frozenUntil)}`;
  return null;
}

/** What of it is no longer so, in words; empty: the plan still says what would happen. */
export function movesSince(
  then: Stood | null,
  params: Params | null,
  nowMs: number,
  /** A newer revision is a move, too. */
  exact = false,
): string[] {
  if (then === null) return params === null ? [] : ['it has params by now'];
  if (params === null) return ['its params are gone'];
  const now = stoodOf(params, nowMs);
  const told: string[] = [];
  const say = (what: string, from: string, to: string) => {
    if (from !== to) told.push(`${what} ${from} → ${to}`);
  };
  if (exact) say('revision', `${then.epoch}/${then.revision}`, `${now.epoch}/${now.revision}`);
  say('adopted policy', then.policy.slice(0, 12), now.policy.slice(0, 12));
  say('mode', then.mode, now.mode);
  say('hold', then.hold ?? 'none', now.hold ?? 'none');
  say('rollout', then.rollout || 'all', now.rollout || 'all');
  say('set by a person', JSON.stringify(then.byPerson), JSON.stringify(now.byPerson));
  if (then.numbers !== null && now.numbers !== null) {
    const numbers = moved(then.numbers, now.numbers);
    if (numbers !== '') told.push(numbers);
  }
  return told;
}
