/** What adopting a policy takes and gives. Stage: actuate. */
import type { ActuateReply, Authority } from '../redis/calls.js';
import type { Params } from '../redis/params.js';
import type { Actor } from './entry.js';

export interface AdoptOptions {
  /** A daemon that owns the limiter writes by its lease; everyone else by compare-and-set. Default: person. */
  authority?: Authority;
  actor: Actor;
  leaseMs: number;
  /** The writer's wall time, ms. */
  nowMs: number;
  prefix?: string | undefined;
  /** Params this process saw last: what missing params are restored to, instead of the policy's own numbers. */
  last?: Params | null;
  /** The person's own words, kept in the entry. */
  why?: string | undefined;
  /** Adopts the same policy once more, to put right what has drifted from it. */
  again?: boolean;
  /** What its canary proved: the entry says that in place of a plain adoption. `by`: the person who asked for it. */
  passed?: { sentence: string; detail: Record<string, unknown>; by?: string | undefined };
  /** What a new limiter in `auto` begins with, within the policy's bounds, in place of its own rate and cap. */
  begins?: { rate: number; inFlightMax: number };
  /** Why what was read is not what the writer was shown; null: go on. Then nothing is written. */
  moved?: (params: Params | null, nowMs: number) => string | null;
}

export type AdoptOutcome =
  | {
      /** `canary`: it runs for a percent of the subjects first. */
      status: 'created' | 'restored' | 'changed' | 'canary';
      epoch: number;
      revision: number;
      sentence: string;
    }
  | { status: 'unchanged' }
  | { status: 'refused'; reason: 'group' | 'moved' | 'canary'; sentence: string }
  | { status: 'refused'; reason: 'write'; sentence: string; reply: ActuateReply };
