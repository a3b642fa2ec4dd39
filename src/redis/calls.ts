/** What the scripts take and answer, as types: the contract between Lua and TypeScript. Stage: actuate, enforce. */
import type { AlgorithmTerms } from './algorithms.js';
import type { LimiterKeys } from './keys.js';
import type { LimiterState, Mode, ParamChange } from './params.js';

export type Priority = 'critical' | 'default' | 'sheddable';

/** Numbers used when the params hash is missing; `-1` subject rate = no subject bucket, 0 cap = none. */
export interface FallbackNumbers {
  rate: number;
  capacity: number;
  inFlightMax: number;
  subjectRate: number;
  subjectCapacity: number;
}

export interface TakeRequest {
  /** Raw subject (encoded by keys.ts), or null: only the total's bucket. */
  subject: string | null;
  /** Tokens; 0 is a peek. */
  cost: number;
  priority: Priority;
}

export interface TakeCall {
  keys: LimiterKeys;
  takes: readonly TakeRequest[];
  /** Latest Redis time (µs) at which the call may still charge; null = only learn the time, charge nothing. */
  chargeByUs: number | null | 'any';
  fallback: FallbackNumbers;
  /** Default: the token bucket. */
  terms?: AlgorithmTerms | undefined;
  /** Use the shadow's buckets; the script refuses (`status: 'mode'`) when params say otherwise. */
  shadow: boolean;
  /** Ask what is known of the subjects; the script refuses (`status: 'rules'`) when params say otherwise. */
  rules?: boolean;
  /** Tests only: Redis time to use instead of TIME. */
  nowUs?: number;
}

/** What was in force for the answers of one call (effective: after open-until, glide). */
export interface InForce {
  managed: boolean;
  epoch: number;
  revision: number;
  generation: number;
  mode: Mode;
  state: LimiterState;
  gliding: boolean;
  rate: number;
  capacity: number;
  inFlightMax: number;
  subjectRate: number;
  subjectCapacity: number;
}

/**
 * Why a take was answered so. Denials: `rate` (total bucket), `subject`, `breaker_open`, `probe_budget`,
 * `reserve` (shed by priority), `fair_share` (the subject is above its share while the total refuses others),
 * `cost_exceeds_capacity`, `blocked` (the subject, by a person). `bad_cost` decided
 * nothing and wrote nothing. `off` and `exempt` (the subject, by a person) admit.
 */
export type TakeReason =
  | 'ok'
  | 'off'
  | 'rate'
  | 'subject'
  | 'breaker_open'
  | 'probe_budget'
  | 'reserve'
  | 'cost_exceeds_capacity'
  | 'bad_cost'
  | 'blocked'
  | 'exempt'
  | 'fair_share';

export interface TakeAnswer {
  allowed: boolean;
  reason: TakeReason;
  /** Whole tokens left in the tighter of the buckets, ≥ 0. */
  remaining: number;
  /** ms until this take could pass: 0 when allowed, ≥ 1 on a denial, null when it never can (or no time is known). */
  retryAfterMs: number | null;
  /** Leaky bucket: ms until an admitted take may proceed; absent: at once. */
  delayMs?: number;
  /** The subject came past the most that may live: the bucket that such share stood in for its own. */
  shared?: true;
}

/**
 * `late`: after `chargeByUs`, nothing was charged. `mode`: wrong bucket set for the mode; `rules`: the other script
 * decides, since something is known of single subjects, or no more. Nothing was charged then either.
 */
export interface TakeReply {
  status: 'ok' | 'late' | 'mode' | 'rules';
  nowUs: number;
  inForce: InForce;
  /** Empty unless status is `ok`; in the order of the call. */
  answers: TakeAnswer[];
  /** How they were decided; absent: the token bucket. */
  terms?: AlgorithmTerms;
}

export interface InFlightCall {
  keys: LimiterKeys;
  /** Unique a process start. */
  processId: string;
  /** Most in flight at once that this process would use now. */
  need: number;
  /** Does this process report completions? */
  reports: boolean;
  /** It takes place by place; `need` is what else is under way here. */
  byPlace?: boolean;
  /** Places are wanted however large the cap; false: never; undefined: where the cap is smaller than the fleet. */
  exact?: boolean | undefined;
  /** Most that may be under way here under a share until the answer is heard; that is nobody else's yet. */
  bound?: number;
  fallback: FallbackNumbers;
  nowUs?: number;
}

export interface InFlightReply {
  nowUs: number;
  inForce: InForce;
  /** This process's part of the cap; Σ shares ≤ cap. Infinity when there is no cap. */
  share: number;
  /** Its part once all others have asked again; a share below it may soon be asked for anew. */
  fair: number;
  processes: number;
  reporting: number;
  /** The cap is kept place by place. */
  places: boolean;
}

export interface SlotsCall {
  keys: LimiterKeys;
  /** `hold` takes or renews; `release` returns, once or many times. */
  op: 'hold' | 'release';
  /** Each unique to one request of one process. */
  ids: readonly string[];
  fallback: FallbackNumbers;
  nowUs?: number;
}

export interface SlotsReply {
  nowUs: number;
  /** 0: no cap. */
  cap: number;
  /** All that are held after the call. */
  held: number;
  /** For each id: is it held (`hold`), was it held (`release`). */
  done: boolean[];
}

export type Authority = { kind: 'lease'; owner: string; token: number } | { kind: 'person' };

export interface ActuateCall {
  keys: LimiterKeys;
  authority: Authority;
  /** What the writer saw. On `create` the epoch and revision that the new params get (epoch must grow). */
  expected: { epoch: number; revision: number };
  create: boolean;
  /** A higher epoch to begin with this write: Redis was found to have lost writes. */
  newEpoch?: number;
  change: ParamChange;
  /** What may pass a hold: `law` and `schedule` are refused while frozen or pinned, `breaker` unless it is held too. */
  cause: 'law' | 'breaker' | 'policy' | 'person' | 'settle' | 'schedule';
  /** Share of the capacity new and existing buckets hold after this write: set for cold starts and lowered rates. */
  refloor?: 'empty' | 'full' | number;
  entry: SealedEntry;
  /** Law state to checkpoint, JSON ≤ 4 KB. */
  checkpoint?: string;
  /** Lease holders renew `validUntil` with each write. */
  leaseMs: number;
  policy?: { hash: string; json: string };
  nowUs?: number;
}

/** An entry as it goes into the stream: `hash` = SHA-256 of `prev`, a line break, `body`. */
export interface SealedEntry {
  kind: 'change' | 'note';
  prev: string;
  hash: string;
  /** Canonical JSON. */
  body: string;
}

export type RefusalReason =
  | 'lease' // not the newest holder
  | 'revision' // (epoch, revision) moved: decide again
  | 'head' // the audit head moved: hash again
  | 'held' // frozen or pinned
  | 'mode' // off, shadow and recommend: nothing moves by itself
  | 'bounds' // a value outside [min, max]
  | 'invalid' // not finite, negative, or the params are missing
  | 'full' // as many overrides of subjects as there may be
  | 'exists'; // create, but params are there

export type ActuateReply =
  | { status: 'ok'; nowUs: number; epoch: number; revision: number; streamId: string }
  | {
      status: 'refused';
      reason: RefusalReason;
      detail: string;
      nowUs: number;
      epoch: number;
      revision: number;
      head: string;
    };

/** `gliding`: the limits are on their way to the safe values; `clock`: Redis's clock was set back. Then actuate. */
export type HeartbeatReply =
  | { status: 'ok'; nowUs: number; validUntil: number; epoch: number; revision: number }
  | { status: 'refused'; reason: 'lease' | 'gliding' | 'clock' | 'missing'; nowUs: number };

export type LeaseReply =
  | { status: 'held'; owner: string; token: number; nowUs: number }
  | { status: 'other'; owner: string; token: number; ttlMs: number; nowUs: number }
  | { status: 'released'; nowUs: number };

export type NoteReply =
  | { status: 'ok'; streamId: string }
  /** `trim`: the entry that was to be trimmed through is not there. */
  | { status: 'refused'; reason: 'head' | 'trim'; head: string };

/** The newest entry that a trim takes away. */
export interface Trim {
  through: string;
  hash: string;
}

export const GENESIS_HASH = '0'.repeat(64);
