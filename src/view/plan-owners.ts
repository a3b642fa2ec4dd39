/** Who owns each number of a limiter (policy, window, law, tuning, a person), and which nobody does: drift. Pure. Stage: cli, api. */
import type { EntryValues, StoredEntry } from '../actuate/entry.js';
import { restingNumbers, standsBeside } from '../actuate/person-policy.js';
import { rolloutMark } from '../actuate/person-rollout.js';
import { paramsFromPolicy } from '../policy/params.js';
import { inWindows } from '../policy/person-bounds.js';
import type { Policy } from '../policy/schema.js';
import { parseByPerson } from '../redis/by-person.js';
import { isActive } from '../redis/effective.js';
import type { ParamChange, Params } from '../redis/params.js';
import { parseRollout, type Rollout, rolloutText } from '../redis/rollout.js';
import { parseWindows, SCHEDULE } from '../redis/windows.js';

export type Owner = 'policy' | 'window' | 'law' | 'tuning' | 'person' | 'nobody';

export interface Owned {
  owner: Owner;
  /** Name of the window's profile, or of the person; null: it has none. */
  by: string | null;
  /** Redis ms, of a hold that ends by itself. */
  untilMs: number | null;
}

export interface Drift {
  /** A field of the params. */
  field: string;
  inForce: string | number;
  /** What the adopted policy gives. */
  adopted: string | number;
}

export type NumberName = 'rate' | 'capacity' | 'inFlightMax';
export const NUMBERS: readonly NumberName[] = ['rate', 'capacity', 'inFlightMax'];

/** Given whole by the policy, as its profile makes it. */
const GIVEN = [
  ...['subjectRate', 'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate'],
  ...['minCapacity', 'maxCapacity', 'minInFlight', 'maxInFlight', 'probeRate', 'lostAfterMs'],
  ...['lostOverMs', 'safeRate', 'safeInFlight', 'onRedisError', 'subject', 'algorithm'],
  ...['windowMs', 'cells', 'terms', 'subjectTerms'],
] as const;
const RESERVES = ['reserveDefault', 'reserveSheddable'] as const;

export interface OwnersOf {
  policy: Policy;
  params: Params;
  nowMs: number;
  /** `change` entries, newest first. */
  entries: readonly StoredEntry[];
}

export function ownersOf(of: OwnersOf): Record<NumberName | 'mode' | 'rollout', Owned> {
  const owned = (name: NumberName) => ownerOfNumber(name, of);
  return {
    mode: ownerOfMode(of),
    rate: owned('rate'),
    capacity: owned('capacity'),
    inFlightMax: owned('inFlightMax'),
    rollout: ownerOfRollout(of),
  };
}

/** What is in force, differs from what the adopted policy gives, and nobody owns. */
export function driftOf(of: OwnersOf): Drift[] {
  const { policy, params } = of;
  const given: ParamChange = paramsFromPolicy(inWindows(policy, parseWindows(params.windows)));
  const owners = ownersOf(of);
  const resting = restingNumbers(policy, params);
  const drift: Drift[] = [];
  if (owners.mode.owner === 'nobody') {
    drift.push({ field: 'mode', inForce: params.mode, adopted: policy.mode });
  }
  for (const name of NUMBERS) {
    if (owners[name].owner !== 'nobody') continue;
    drift.push({ field: name, inForce: params[name], adopted: resting[name] });
  }
  if (owners.rollout.owner === 'nobody') {
    const adopted = rolloutText(policy.limiter.rollout as Rollout | undefined);
    drift.push({ field: 'rollout', inForce: params.rollout, adopted });
  }
  // Under overload the law raises the reserves, where the policy lets it.
  const moves = policy.bounds?.reserve !== undefined && params.mode === 'auto';
  for (const field of [...GIVEN, ...(moves ? [] : RESERVES)] as (keyof ParamChange)[]) {
    const [inForce, adopted] = [params[field], given[field]];
    if (adopted !== undefined && inForce !== adopted) drift.push({ field, inForce, adopted });
  }
  return drift;
}

export const NOBODY: Owned = { owner: 'nobody', by: null, untilMs: null };
export const POLICY: Owned = { owner: 'policy', by: null, untilMs: null };

function person(by: string, until = 0): Owned {
  return { owner: 'person', by, untilMs: until > 0 ? until : null };
}

function ownerOfMode({ policy, params }: OwnersOf): Owned {
  const { said, mode } = standsBeside(policy, params.byPerson);
  if (params.mode !== mode) return NOBODY;
  return said.mode === undefined ? POLICY : person(said.mode.by);
}

function ownerOfRollout({ policy, params }: OwnersOf): Owned {
  const own = policy.limiter.rollout as Rollout | undefined;
  if (params.rollout === rolloutText(own)) return POLICY;
  const over = parseRollout(params.rollout)?.over;
  return over !== undefined && over === rolloutMark(own) ? person('a person') : NOBODY;
}

function ownerOfNumber(name: NumberName, of: OwnersOf): Owned {
  const { policy, params, nowMs, entries } = of;
  const stored = params[name];
  const newest = entries[0]?.body.after;
  // Written past the audit log: whoever holds it did not put it there.
  if (newest != null && newest[name] !== stored) return NOBODY;
  const held = holdOf(params, nowMs);
  if (held !== null) return held;
  const resting = restingNumbers(policy, params)[name];
  if (params.mode !== 'auto') {
    if (stored === resting) return whoseResting(name, params);
    return params.state === 'closed' ? NOBODY : { owner: 'law', by: null, untilMs: null };
  }
  const setter = entries.find(({ body }) => differs(body.before, body.after, name));
  if (setter === undefined) return stored === resting ? whoseResting(name, params) : NOBODY;
  const { actor, reason } = setter.body;
  if (reason === 'tune') return { owner: 'tuning', by: actor.name, untilMs: null };
  if (stored === resting) return whoseResting(name, params);
  if (policy.control.law === 'fixed' && actor.kind === 'person') return person(actor.name);
  return { owner: 'law', by: null, untilMs: null };
}

function holdOf({ pinnedUntil, frozenUntil, heldBy }: Params, nowMs: number): Owned | null {
  const until = isActive(pinnedUntil, nowMs) ? pinnedUntil : frozenUntil;
  if (!isActive(until, nowMs)) return null;
  if (heldBy !== SCHEDULE) return person(heldBy || 'a person', until);
  return { owner: 'window', by: SCHEDULE, untilMs: until > 0 ? until : null };
}

function whoseResting(name: NumberName, params: Params): Owned {
  const { profile } = parseWindows(params.windows);
  if (profile !== undefined) return { owner: 'window', by: profile.name, untilMs: profile.untilMs };
  const said = params.mode === 'auto' ? undefined : parseByPerson(params.byPerson)[name];
  return said === undefined ? POLICY : person(said.by);
}

function differs(before: EntryValues | null, after: EntryValues | null, name: NumberName): boolean {
  return before !== null && after !== null && before[name] !== after[name];
}
