/** One audit entry: what changed, who, why, and the inputs to recompute it; canonical bytes and their hash. Stage: actuate. */
import { createHash } from 'node:crypto';
import { configure } from 'safe-stable-stringify';
import type { DecideState, GuardVerdict, Sample } from '../decide/types.js';
import type { SealedEntry } from '../redis/calls.js';
import type { LimiterState, Mode } from '../redis/params.js';

/** The numbers a person compares before → after. */
export interface EntryValues {
  mode: Mode;
  state: LimiterState;
  rate: number;
  capacity: number;
  inFlightMax: number;
  /** Of a decision that may move them: shares of the capacity kept from takes of that priority. */
  reserve?: { default: number; sheddable: number };
}

export interface Actor {
  kind: 'autopilot' | 'person';
  /** Daemon id; of a person the name of a token, else `user@host (unverified)`. */
  name: string;
  /** A person proved the name with a token; absent: nobody checked it. */
  verified?: true;
}

/** Hashed: holds only what the writer knows beforehand (its own time; no stream id, no token clock). */
export interface EntryBody {
  v: 1;
  kind: 'change' | 'note';
  limiter: string;
  epoch: number;
  revision: number;
  /** The writer's wall time, ms. */
  atMs: number;
  actor: Actor;
  /** Reason code: `law_cut`, `breaker_trip`, `rollback`, `pin`, `policy_adopted`, … */
  reason: string;
  sentence: string;
  before: EntryValues | null;
  after: EntryValues | null;
  policyHash: string;
  /** `adaptive@1`; absent for a person's verb. */
  law?: string;
  /** Inputs of the decision: `explain` feeds them to the same functions. */
  sample?: Sample;
  stateBefore?: DecideState;
  verdicts?: GuardVerdict[];
  terms?: Record<string, number>;
  /** Verb details: `{ toRevision: 7, until: … }`, the person's reason. */
  detail?: Record<string, unknown>;
}

/** Reason code of the note that a trim leaves; its detail names the last hash that it took away. */
export const AUDIT_TRIMMED = 'audit_trimmed';

const canonical = configure({ bigint: false, circularValue: Error });

/** Canonical bytes: keys sorted, no spaces, UTF-8; -0 is 0. */
export function canonicalJson(value: unknown): string {
  const text = canonical(value);
  if (text === undefined) throw new TypeError('value has no JSON form');
  return text;
}

export function entryHash(prev: string, body: string): string {
  return createHash('sha256').update(`${prev}\n${body}`, 'utf8').digest('hex');
}

export function sealEntry(prev: string, body: EntryBody): SealedEntry {
  const text = canonicalJson(body);
  return { kind: body.kind, prev, hash: entryHash(prev, text), body: text };
}

/** One entry as stored: the stream's fields, and the body parsed. */
export interface StoredEntry {
  /** Redis stream id: `<ms>-<n>`, the time at which Redis stored it. */
  id: string;
  kind: 'change' | 'note';
  epoch: number;
  revision: number;
  hash: string;
  prev: string;
  /** The exact bytes that were hashed. */
  text: string;
  body: EntryBody;
}

/** An entry that was changed or cut short from outside, so that it cannot be read; what of it can. */
export interface UnreadableEntry {
  id: string;
  /** From its fields, if they are there. */
  epoch: number | null;
  revision: number | null;
  /** `its body is not JSON`. */
  why: string;
}

export function isReadable(entry: StoredEntry | UnreadableEntry): entry is StoredEntry {
  return !('why' in entry);
}

/** Stream fields → entry, or why it cannot be read: one broken entry must not hide the others. */
export function readEntry(id: string, fields: readonly string[]): StoredEntry | UnreadableEntry {
  const field: Record<string, string> = {};
  for (let i = 0; i + 1 < fields.length; i += 2) field[fields[i]!] = fields[i + 1]!;
  const { kind, hash, prev, body: text } = field;
  const epoch = Number(field.epoch);
  const revision = Number(field.revision);
  const broken = (why: string): UnreadableEntry => ({
    id,
    epoch: Number.isInteger(epoch) ? epoch : null,
    revision: Number.isInteger(revision) ? revision : null,
    why,
  });
  if ((kind !== 'change' && kind !== 'note') || !hash || !prev || text === undefined) {
    return broken('its fields are not those of an audit entry');
  }
  if (!Number.isInteger(epoch) || !Number.isInteger(revision)) {
    return broken('its epoch or revision is not a number');
  }
  const body = parsedBody(text);
  if (body === null) return broken('its body is not that of an audit entry');
  return { id, kind, epoch, revision, hash, prev, text, body };
}

function parsedBody(text: string): EntryBody | null {
  try {
    const body: unknown = JSON.parse(text);
    return isBody(body) ? body : null;
  } catch {
    return null;
  }
}

/** What every reader of an entry relies on; the inputs of a decision are checked by whoever recomputes it. */
function isBody(value: unknown): value is EntryBody {
  if (!isObject(value) || !isObject(value.actor)) return false;
  const { actor, reason, sentence, policyHash, atMs, before, after } = value;
  return (
    [actor.kind, actor.name, reason, sentence, policyHash].every((t) => typeof t === 'string') &&
    typeof atMs === 'number' &&
    isValues(before) &&
    isValues(after)
  );
}

function isValues(value: unknown): boolean {
  if (value === null) return true;
  if (!isObject(value)) return false;
  const { mode, state, rate, capacity, inFlightMax } = value;
  return (
    typeof mode === 'string' &&
    typeof state === 'string' &&
    [rate, capacity, inFlightMax].every((n) => typeof n === 'number')
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
