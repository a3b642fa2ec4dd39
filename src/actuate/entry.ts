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
}

export interface Actor {
  kind: 'autopilot' | 'person';
  /** Daemon id, or `user@host (unverified)`. */
  name: string;
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
