/** What audit entries must show after any faults: bounds, one entry a revision, authority, evidence, holds, determinism. */
import type { StoredEntry } from '../../src/actuate/audit.js';
import { entryHash } from '../../src/actuate/entry.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { boundsOf } from '../../src/decide/bounds.js';
import { missingSignals } from '../../src/decide/missing.js';
import { type Policy, policySchema } from '../../src/policy/schema.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { RedisClient } from '../../src/redis/run-script.js';
import { storedMs } from '../../src/redis/stream-id.js';
import {
  allEntries,
  type FaultSpan,
  type LeaseLook,
  type LimiterRecord,
  type Segment,
} from '../support/fault-record.js';
import type { Checked } from './checker.js';

const at = (entry: StoredEntry) =>
  `revision ${entry.epoch}/${entry.revision} (${entry.body.reason}, ${entry.id})`;
const isLaw = ({ body }: StoredEntry) =>
  body.actor.kind === 'autopilot' && body.law !== undefined && body.sample !== undefined;

/** The policies that entries name, parsed once. */
export function policiesOf(limiter: LimiterRecord): (hash: string) => Policy | null {
  const known = new Map<string, Policy | null>();
  return (hash) => {
    let found = known.get(hash);
    if (found === undefined) {
      const text = limiter.policies.get(limiterKeys({ name: limiter.name }).policyVersion(hash));
      found = text === undefined ? null : policySchema.parse(JSON.parse(text));
      known.set(hash, found);
    }
    return found;
  };
}

/** I1: what any entry puts in force lies in the bounds of its state. */
export function checkBounds(limiter: LimiterRecord): Checked {
  const policyOf = policiesOf(limiter);
  return each(allEntries(limiter), (entry) => {
    const { after, before, actor, policyHash } = entry.body;
    if (entry.kind !== 'change' || after === null) return null;
    const numbers = [after.rate, after.capacity, after.inFlightMax];
    if (!numbers.every((n) => Number.isFinite(n) && n >= 0)) {
      return `${at(entry)}: rate ${after.rate}, capacity ${after.capacity}, cap ${after.inFlightMax}`;
    }
    const policy = policyOf(policyHash);
    if (policy === null) return undefined;
    const { rate, inFlight, probeRate } = boundsOf(policy);
    const person = actor.kind === 'person';
    const least = after.state === 'recovering' ? Math.min(probeRate, rate.min) : rate.min;
    // A pin may lie below the bounds, and what comes after it begins there.
    const stood = before !== null && after.rate >= Math.min(before.rate, least);
    const low = !person && after.state !== 'open' && after.state !== 'half-open' && !stood;
    if (after.rate > rate.max || (low && after.rate < least)) {
      return `${at(entry)}: rate ${after.rate} outside ${least} … ${rate.max} while ${after.state}`;
    }
    if (inFlight !== null && after.inFlightMax > inFlight.max) {
      return `${at(entry)}: cap ${after.inFlightMax} above ${inFlight.max}`;
    }
    return null;
  });
}

/** I2: each log, as each server held it, is one chain with one change a revision and no gap. */
export function checkChain(limiter: LimiterRecord): Checked {
  const violations: string[] = [];
  let checked = 0;
  for (const segment of limiter.segments) {
    violations.push(...segment.unreadable.map((what) => `an entry cannot be read: ${what}`));
    checked += segment.entries.length;
    violations.push(...brokenLinks(segment));
  }
  const params = limiter.end?.params;
  const last = limiter.segments.at(-1)?.entries.findLast(({ kind }) => kind === 'change');
  if (params && (last?.revision !== params.revision || last.epoch !== params.epoch)) {
    const seen = last === undefined ? 'none' : at(last);
    violations.push(
      `in force is ${params.epoch}/${params.revision}, the newest entry is ${seen}: a revision without its entry`,
    );
  }
  return { checked, violations };
}

function brokenLinks({ entries }: Segment): string[] {
  const faults: string[] = [];
  let prev = GENESIS_HASH;
  let change: StoredEntry | null = null;
  for (const entry of entries) {
    if (entry.prev !== prev) faults.push(`${at(entry)}: its link does not match`);
    if (entryHash(entry.prev, entry.text) !== entry.hash)
      faults.push(`${at(entry)}: its hash differs`);
    prev = entry.hash;
    if (entry.kind !== 'change') continue;
    const after = change;
    change = entry;
    if (after === null) continue;
    const next = entry.epoch > after.epoch || entry.revision === after.revision + 1;
    if (entry.epoch < after.epoch || !next) {
      faults.push(`${at(entry)} follows ${after.epoch}/${after.revision}: a gap or a second entry`);
    }
  }
  return faults;
}

/** A daemon that starts takes its file over by compare-and-set, as a person's `apply` does: no lease is asked for. */
const BY_COMPARE = ['policy_adopted', 'params_created', 'params_restored'];

/** I3: no autopilot's change was written while another held the lease before and after it by the same grant. */
export function checkAuthority(limiter: LimiterRecord): Checked {
  const entries = allEntries(limiter).filter(
    ({ kind, body }) =>
      kind === 'change' && body.actor.kind === 'autopilot' && !BY_COMPARE.includes(body.reason),
  );
  return each(entries, (entry) => {
    const [before, after] = around(limiter.leases, storedMs(entry));
    if (before === null || after === null || before.owner === null) return undefined;
    const steady = before.owner === after.owner && before.token === after.token;
    if (!steady || before.owner === entry.body.actor.name) return null;
    return `${at(entry)}: written by ${entry.body.actor.name} while ${before.owner} held the lease (${before.token})`;
  });
}

function around(looks: readonly LeaseLook[], atMs: number): [LeaseLook | null, LeaseLook | null] {
  return [
    looks.findLast((look) => look.atMs < atMs - 1) ?? null,
    looks.find((look) => look.atMs > atMs + 1) ?? null,
  ];
}

const MISSING = (reason: string | undefined) =>
  reason !== undefined && reason !== 'no_traffic' && reason !== 'thin';

/** I4: no raise and no trip by what is missing, stale, no number or thin. */
export function checkBadSignals(limiter: LimiterRecord): Checked {
  const policyOf = policiesOf(limiter);
  return each(allEntries(limiter).filter(isLaw), (entry) => {
    const { before, after, sample, reason, policyHash } = entry.body;
    const policy = policyOf(policyHash);
    if (before === null || after === null || policy === null) return undefined;
    if (reason === 'breaker_trip') {
      const { breaker } = policy;
      const levels = breaker === undefined ? [] : [breaker, ...(breaker.or ?? [])];
      const proven = levels.some(({ on }) => {
        const signal = sample!.signals[on];
        const counted = sample!.outcomes.fresh;
        return counted || (signal?.fresh === true && Number.isFinite(signal.value));
      });
      return proven ? null : `${at(entry)}: tripped although no level's signal is fresh`;
    }
    const raised = before.state === 'closed' && after.state === 'closed' && isRaise(entry);
    if (!raised) return undefined;
    if (reason === 'glide_missing') return `${at(entry)}: raised for want of a signal`;
    if (!reason.startsWith('law_') || reason === 'law_settle') return undefined;
    if (!sample!.traffic.fresh) return `${at(entry)}: raised on traffic that is not fresh`;
    const bad = missingSignals(policy, sample!).missing.filter((m) => m.onMissing !== 'ignore');
    const names = bad.map(({ name }) => `${name} (${sample!.signals[name]?.reason ?? 'no value'})`);
    const strange = Object.keys(policy.objective).filter((name) => {
      const signal = sample!.signals[name];
      return signal?.fresh === true && (!Number.isFinite(signal.value) || MISSING(signal.reason));
    });
    const all = [...names, ...strange];
    return all.length === 0 ? null : `${at(entry)}: raised although ${all.join(', ')} is bad`;
  });
}

function isRaise({ body: { before, after } }: StoredEntry): boolean {
  return after!.rate > before!.rate || after!.inFlightMax > before!.inFlightMax;
}

/** I10: a raise by the law was asked for: a limit bound, or demand was near it. */
export function checkIdle(limiter: LimiterRecord): Checked {
  return each(allEntries(limiter).filter(isLaw), (entry) => {
    const { before, after, sample, reason } = entry.body;
    if (before === null || after === null || reason !== 'law_raise' || !isRaise(entry)) {
      return undefined;
    }
    const { traffic } = sample!;
    const near =
      traffic.deniedByRate > 0 ||
      traffic.deniedByCap > 0 ||
      traffic.admittedRate >= 0.5 * before.rate ||
      (before.inFlightMax > 0 && (traffic.inFlight ?? 0) >= 0.5 * before.inFlightMax);
    if (near) return null;
    return `${at(entry)}: raised from ${before.rate}/s although ${traffic.admittedRate}/s were admitted and none denied`;
  });
}

const HOLDS = ['pin', 'rollback', 'freeze'];
const ENDS = ['release', 'thaw', 'hold_lapsed'];

/** I7: what a person holds stays, until they let go or its time is over; a trip comes back to it. */
export function checkHolds(limiter: LimiterRecord, faults: readonly FaultSpan[]): Checked {
  const violations: string[] = [];
  let checked = 0;
  let held: StoredEntry | null = null;
  for (const entry of allEntries(limiter)) {
    const { body } = entry;
    if (entry.kind !== 'change' || body.after === null) continue;
    const until = Number(held?.body.detail?.until ?? 0);
    if (held !== null && until !== -1 && storedMs(entry) > until) held = null;
    if (ENDS.includes(body.reason)) held = null;
    if (body.actor.kind === 'person') {
      if (HOLDS.includes(body.reason)) {
        held = entry;
        // No entry in its time has moved it, or one that follows here did.
        checked += 1;
      }
      continue;
    }
    if (held === null || body.reason === 'policy_adopted' || body.after.state !== 'closed')
      continue;
    // A hold that only a server knew which is gone cannot be put back.
    if (faults.some((fault) => fault.loses && ranAround(fault, storedMs(held!)))) {
      held = null;
      continue;
    }
    checked += 1;
    const { rate, inFlightMax } = held.body.after!;
    if (body.after.rate !== rate || body.after.inFlightMax !== inFlightMax) {
      violations.push(
        `${at(entry)}: rate ${body.after.rate}, cap ${body.after.inFlightMax} although ${at(held)} holds ${rate}, ${inFlightMax}`,
      );
    }
  }
  return { checked, violations };
}

/** What a daemon may not have seen yet, or a replica not got, when the server was lost. */
const UNSEEN_MS = 1_500;

function ranAround({ fromMs, toMs }: FaultSpan, atMs: number): boolean {
  return atMs >= fromMs - UNSEEN_MS && atMs <= (toMs ?? Number.POSITIVE_INFINITY);
}

/** I9: only policies that are whole were ever in force. */
export function checkPolicies(limiter: LimiterRecord): Checked {
  const allowed = limiter.allowedPolicies;
  if (allowed === null) return { checked: 0, violations: [] };
  return each(allEntries(limiter), (entry) => {
    const { policyHash } = entry.body;
    if (policyHash === '' || allowed.has(policyHash)) return null;
    return `${at(entry)}: policy ${policyHash.slice(0, 12)} is none of those that are whole`;
  });
}

/** I13: each decision, taken again from its entry, is the same. */
export async function checkExplained(limiter: LimiterRecord): Promise<Checked> {
  // All that explaining reads of Redis is the policy that the entry names.
  const kept = {
    mget: async (...keys: string[]) => keys.map((key) => limiter.policies.get(key) ?? null),
  } as unknown as RedisClient;
  const violations: string[] = [];
  let checked = 0;
  for (const entry of allEntries(limiter)) {
    const { verdict, sentence } = await explainEntry(kept, { name: limiter.name }, entry);
    if (verdict === 'not_a_decision') continue;
    checked += 1;
    if (verdict === 'incomplete' && !limiter.policies.has(keyOf(limiter, entry))) checked -= 1;
    else if (verdict !== 'agrees') violations.push(`${at(entry)}: ${verdict}: ${sentence}`);
  }
  return { checked, violations };
}

function keyOf({ name }: LimiterRecord, { body }: StoredEntry): string {
  return limiterKeys({ name }).policyVersion(body.policyHash);
}

/** I12, of its entries: outside `auto` the autopilot moves no number. */
export function checkRecommended(limiter: LimiterRecord): Checked {
  return each(allEntries(limiter), (entry) => {
    const { actor, before, after, law } = entry.body;
    if (entry.kind !== 'change' || actor.kind === 'person' || before === null || after === null)
      return undefined;
    if (before.mode === 'auto' || after.mode !== before.mode) return undefined;
    if (law === undefined) return null;
    return `${at(entry)}: the law changed a limiter in mode ${before.mode}`;
  });
}

/** `undefined`: it says nothing of this; null: it holds. */
function each(
  entries: readonly StoredEntry[],
  look: (entry: StoredEntry) => string | null | undefined,
): Checked {
  const found = entries.map(look).filter((what) => what !== undefined);
  return { checked: found.length, violations: found.filter((what) => what !== null) };
}
