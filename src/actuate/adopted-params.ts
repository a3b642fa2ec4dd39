/** The numbers that adopting a policy puts in force, as pure functions of the policy and of what held. Stage: actuate. */
import { capacityFor, clamp } from '../decide/bounds.js';
import type { LoadedPolicy } from '../policy/load.js';
import { paramsFromPolicy } from '../policy/params.js';
import { inWindows } from '../policy/person-bounds.js';
import { windowsAt } from '../policy/profile.js';
import type { Policy } from '../policy/schema.js';
import { byPersonText } from '../redis/by-person.js';
import { effective, isActive, settled } from '../redis/effective.js';
import type { ParamChange, Params } from '../redis/params.js';
import type { Rollout } from '../redis/rollout.js';
import { parseWindows, type Windows, windowsText } from '../redis/windows.js';
import { numbersInPlace, replacedBy, standsBeside, standsTold } from './person-policy.js';
import { adoptedRollout } from './person-rollout.js';

const UNTOUCHED: ParamChange = {
  state: 'closed',
  generation: 0,
  openUntil: 0,
  openForMs: 0,
  frozenUntil: 0,
  pinnedUntil: 0,
  holdBreaker: 0,
  heldBy: '',
};

/** What a person or the breaker set; a policy never overwrites these. */
const NOT_THE_POLICYS = Object.keys(UNTOUCHED) as (keyof ParamChange)[];

/**
 * Params for a limiter that has none. When this process saw params of the same policy before (Redis lost them),
 * they are restored: the law's value, a trip and a person's hold survive the loss.
 */
export function createdParams(
  loaded: LoadedPolicy,
  last: Params | null,
  nowMs: number,
  begins?: { rate: number; inFlightMax: number },
): { change: ParamChange; restored: boolean; sentence: string } {
  const known = last !== null && last.policyHash === loaded.hash ? last.windows : '';
  // Whether a scheduled freeze was begun, and what bounds a person set, is what was known of it.
  const moment = atTheMoment(loaded.policy, known, nowMs);
  const policy = inWindows(loaded.policy, moment);
  const windows = windowsText(moment);
  const fresh: ParamChange = {
    ...UNTOUCHED,
    ...paramsFromPolicy(policy),
    policyHash: loaded.hash,
    windows,
    byPerson: '',
    canary: '',
  };
  if (begins !== undefined && fresh.mode === 'auto') {
    const { rate = 0, minRate = 0, maxRate = rate, inFlightMax = 0 } = fresh;
    const { minInFlight = 0, maxInFlight = inFlightMax } = fresh;
    fresh.rate = clamp(begins.rate, minRate, maxRate);
    fresh.capacity = capacityFor(policy, fresh.rate);
    fresh.inFlightMax = capped(begins.inFlightMax, minInFlight, maxInFlight, inFlightMax);
  }
  const short = loaded.hash.slice(0, 12);
  if (last === null || last.policyHash !== loaded.hash) {
    return {
      change: fresh,
      restored: false,
      sentence: `${loaded.policy.limiter.name} begins with its policy ${short}: ${numbers(fresh)}, mode ${fresh.mode}${profileOf(windows)}.`,
    };
  }
  const change: ParamChange = {
    ...fresh,
    mode: last.mode,
    // A window or a person's bounds may have ended since.
    rate: Math.min(last.rate, fresh.maxRate ?? last.rate),
    capacity: Math.min(last.capacity, fresh.maxCapacity ?? last.capacity),
    inFlightMax: Math.min(last.inFlightMax, fresh.maxInFlight ?? last.inFlightMax),
    rollout: last.rollout,
    byPerson: last.byPerson,
    canary: last.canary,
  };
  for (const field of NOT_THE_POLICYS) Object.assign(change, { [field]: last[field] });
  return {
    change,
    restored: true,
    sentence: `Redis had lost the params of ${loaded.policy.limiter.name}; restored as last seen at revision ${last.revision}: ${numbers(change)}, ${last.state}.`,
  };
}

/**
 * Params after another policy is adopted. In `auto` the rate and cap in force stay, clamped to the new bounds;
 * in other modes the policy's numbers are set. A hold stays, lowered only to the new maximum. The breaker's
 * state is not the policy's and stays. What a person promoted or approved stays until the policy says otherwise of
 * that very field, and a person's bounds until their time.
 */
export function adoptedParams(
  loaded: Pick<LoadedPolicy, 'policy' | 'hash'> & Partial<LoadedPolicy>,
  params: Params,
  nowMs: number,
  /** The person who adopts it; absent: a daemon, whose file it is. */
  person?: string,
  moment: Windows = atTheMoment(loaded.policy, params.windows, nowMs),
): { change: ParamChange; sentence: string; goesLower: boolean } {
  const policy = inWindows(loaded.policy, moment);
  const windows = windowsText(moment);
  const { state, rate, inFlightMax } = settled(params, effective(params, nowMs));
  const { said, mode } = standsBeside(loaded.policy, params.byPerson);
  if (person !== undefined) {
    const replaced = { from: params.policyHash, to: loaded.hash, by: person };
    const mark = replacedBy(params.byPerson, replaced);
    if (mark !== undefined) said.policy = mark;
  }
  const byPerson = byPersonText(said);
  const change: ParamChange = {
    ...paramsFromPolicy(policy),
    ...{ mode, policyHash: loaded.hash, windows, byPerson, canary: '' },
  };
  const { openForMs } = change;
  const rollout = adoptedRollout(policy.limiter.rollout as Rollout | undefined, params.rollout);
  change.rollout = rollout.text;
  for (const field of NOT_THE_POLICYS) delete change[field];
  if (state !== 'open') change.openForMs = openForMs;
  const policyRate = change.rate ?? 0;
  const policyCapacity = change.capacity ?? 0;
  const held = isActive(params.pinnedUntil, nowMs) || isActive(params.frozenUntil, nowMs);
  const maxRate = change.maxRate ?? policyRate;
  const maxInFlight = change.maxInFlight ?? 0;
  let told: string;
  if (held) {
    change.rate = Math.min(rate, maxRate);
    const { minCapacity = 0, maxCapacity = policyCapacity } = change;
    change.capacity = clamp(params.capacity, minCapacity, maxCapacity);
    change.inFlightMax = capped(inFlightMax, 0, maxInFlight, change.inFlightMax ?? 0);
    const lowered = change.rate < rate || change.inFlightMax < inFlightMax;
    told = `the hold of ${params.heldBy || 'a person'} stays${lowered ? ', lowered to the new maximum' : ''}`;
  } else if (mode === 'auto') {
    // Slow start and a trip lie below the minimum by design: only a closed limiter is lifted to it.
    const closed = state === 'closed';
    change.rate = clamp(rate, closed ? (change.minRate ?? 0) : 0, maxRate);
    const least = closed ? (change.minInFlight ?? 0) : 0;
    change.inFlightMax = capped(inFlightMax, least, maxInFlight, change.inFlightMax ?? 0);
    change.capacity = capacityFor(policy, change.rate);
    told =
      change.rate === rate && change.inFlightMax === inFlightMax
        ? 'rate and cap in force are kept'
        : 'rate and cap in force are kept within the new bounds';
  } else {
    const profile = moment.profile !== undefined;
    Object.assign(change, numbersInPlace(policy, said, profile, change));
    told = "the policy's own numbers are set";
  }
  return {
    change,
    goesLower: lowest(change) < lowest(params),
    sentence: `${adoptedWords(loaded.hash, params.policyHash)}, mode ${mode}: ${told}: ${numbers(change)}${standsTold(said)}${rollout.told}${profileOf(windows)}.`,
  };
}

/** The profile of this moment; of a freeze only what was begun, since its leader begins it; a person's bounds until their time. */
function atTheMoment(policy: Policy, before: string, nowMs: number): Windows {
  const { profile } = windowsAt(policy, nowMs);
  const { freeze, bounds } = parseWindows(before);
  return {
    ...(profile && { profile }),
    ...(freeze && { freeze }),
    ...(bounds && bounds.untilMs > nowMs && { bounds }),
  };
}

function adoptedWords(hash: string, replaced: string): string {
  const [policy, other] = [hash.slice(0, 12), replaced.slice(0, 12)];
  if (hash === replaced) return `Policy ${policy} is put in force once more`;
  return `Policy ${policy} is adopted in place of ${other}`;
}

/** Buckets expire by the lowest rate the law can reach; a lower one would let missing buckets seem full too early. */
function lowest(params: ParamChange): number {
  return Math.min(params.minRate ?? Infinity, params.probeRate ?? Infinity);
}

/** 0 is "no cap": a limiter that gains a cap starts with the policy's, one that loses it has none. */
function capped(inForce: number, min: number, max: number, policys: number): number {
  if (policys === 0) return 0;
  return inForce === 0 ? policys : clamp(inForce, min, max);
}

function profileOf(windows: string): string {
  const { profile, bounds } = parseWindows(windows);
  const told = profile === undefined ? '' : `; profile ${profile.name} holds`;
  return bounds === undefined ? told : `${told}; the bounds of ${bounds.by} stay`;
}

function numbers(change: ParamChange): string {
  const cap = change.inFlightMax ? `, cap ${change.inFlightMax}` : '';
  return `rate ${change.rate}/s, capacity ${change.capacity}${cap}`;
}
