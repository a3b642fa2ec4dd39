/** The params hash of a limiter as plain data: names, types and units of every field. Stage: actuate, enforce. */
import { FlyballError } from '../errors.js';
import type { Algorithm } from './algorithms.js';

export const PARAMS_VERSION = 1;

/** From the least trust to the most. */
export const MODES = ['off', 'shadow', 'recommend', 'auto'] as const;
export type Mode = (typeof MODES)[number];
export type LimiterState = 'closed' | 'open' | 'half-open' | 'recovering';
/** What a service does when Redis does not answer in time. */
export type OnRedisError = 'open' | 'closed' | 'local';

/**
 * What is in force, as stored. Field names are the Redis field names. Rates are tokens per second,
 * times ending in `At`/`Until` are Redis milliseconds (`changedAt` is microseconds: the token clock).
 * `0` in an `…Until` field means "not set"; `-1` means "until a person ends it".
 */
export interface Params {
  v: number;
  mode: Mode;
  state: LimiterState;
  epoch: number;
  revision: number;
  /** +1 at each trip; an outcome of an older generation is ignored. */
  generation: number;

  rate: number;
  capacity: number;
  /** In-flight cap; 0 = no cap. */
  inFlightMax: number;
  /** Per-subject bucket; `subjectRate` -1 = none. */
  subjectRate: number;
  subjectCapacity: number;
  /** 1: the subject's rate follows the total's (`rate ÷ policyRate`). */
  subjectFollow: 0 | 1;
  /** The policy's own rate: the base that `subjectFollow` scales by. */
  policyRate: number;

  minRate: number;
  maxRate: number;
  minCapacity: number;
  maxCapacity: number;
  minInFlight: number;
  maxInFlight: number;

  /** Token clock: tokens the rate has paid up to `changedAt` (Redis µs), total and subject. */
  accrued: number;
  changedAt: number;
  subjectAccrued: number;
  /** A bucket's mark counts as at least this; keeps raises, trips and cold starts from minting. */
  floor: number;
  subjectFloor: number;

  openUntil: number;
  /** The open time of this trip: bounds how far ahead `openUntil` may lie after a clock step. */
  openForMs: number;
  probeRate: number;

  /** Heartbeat of the lease holder; past it the limits hold for `lostAfterMs`, then glide over `lostOverMs`. */
  validUntil: number;
  lostAfterMs: number;
  lostOverMs: number;
  safeRate: number;
  safeInFlight: number;

  /** Share of the capacity that must remain after a take of that priority. */
  reserveDefault: number;
  reserveSheddable: number;

  /** Freeze: law, tuning and schedules change nothing. Pin: a person's value is held. */
  frozenUntil: number;
  pinnedUntil: number;
  /** 1: the breaker is held too. */
  holdBreaker: 0 | 1;
  heldBy: string;

  /** The last fencing token that was given out. */
  fence: number;
  policyHash: string;

  /** What services do without Redis; empty: the policy leaves it to each service. */
  onRedisError: OnRedisError | '';
  /** Template of the subject that middleware fills, `user:{userId}`; empty: none. */
  subject: string;
  /** How takes are decided; empty: the policy leaves it to each service. With a window, limit = rate × window. */
  algorithm: Algorithm | '';
  /** 0 where there is no window; cells of a sliding counter. */
  windowMs: number;
  cells: number;
  /** What else the policy says to services (`ServiceTerms` as JSON); empty: nothing. */
  terms: string;
  /** Whom the limiter is enforced for so far (`Rollout` as JSON); empty: for all. */
  rollout: string;
  /** 1: something is known of single subjects, so takes go by the script that looks it up. */
  subjectRules: 0 | 1;
  /** What the policy says of single subjects, for the script (`subjectTermsText`); empty: nothing. */
  subjectTerms: string;
  /** The profile and the scheduled freeze that hold (`Windows` as JSON); empty: none. */
  windows: string;
  /** What a person set in place of the policy's (`ByPerson` as JSON), until that becomes another; empty: nothing. */
  byPerson: string;
  /** A version that runs for a percent of the subjects first, or how that ended (`Canary` as JSON); empty: none. */
  canary: string;
}

export type ParamField = keyof Params;

const TEXT_FIELDS = new Set<ParamField>([
  'mode',
  'state',
  'heldBy',
  'policyHash',
  'onRedisError',
  'subject',
  'algorithm',
  'terms',
  'rollout',
  'subjectTerms',
  'windows',
  'byPerson',
  'canary',
]);
/** Fields that came later: params written before them are read with these. */
const LATER: Partial<Record<ParamField, string>> = {
  ...{ onRedisError: '', subject: '', algorithm: '', windowMs: '0', cells: '0' },
  ...{ terms: '', rollout: '', subjectRules: '0', subjectTerms: '' },
  ...{ windows: '', byPerson: '', canary: '' },
};

/** Field order, fixed: scripts and golden files rely on names, people read in this order. */
export const PARAM_FIELDS = [
  'v',
  'mode',
  'state',
  'epoch',
  'revision',
  'generation',
  'rate',
  'capacity',
  'inFlightMax',
  'subjectRate',
  'subjectCapacity',
  'subjectFollow',
  'policyRate',
  'minRate',
  'maxRate',
  'minCapacity',
  'maxCapacity',
  'minInFlight',
  'maxInFlight',
  'accrued',
  'changedAt',
  'subjectAccrued',
  'floor',
  'subjectFloor',
  'openUntil',
  'openForMs',
  'probeRate',
  'validUntil',
  'lostAfterMs',
  'lostOverMs',
  'safeRate',
  'safeInFlight',
  'reserveDefault',
  'reserveSheddable',
  'frozenUntil',
  'pinnedUntil',
  'holdBreaker',
  'heldBy',
  'fence',
  'policyHash',
  'onRedisError',
  'subject',
  'algorithm',
  'windowMs',
  'cells',
  'terms',
  'rollout',
  'subjectRules',
  'subjectTerms',
  'windows',
  'byPerson',
  'canary',
] as const satisfies readonly ParamField[];

/** The fields a writer sets; the script itself keeps the clocks, floors, revision and epoch. */
export type ParamChange = Partial<
  Omit<
    Params,
    | 'v'
    | 'epoch'
    | 'revision'
    | 'accrued'
    | 'changedAt'
    | 'subjectAccrued'
    | 'floor'
    | 'subjectFloor'
    | 'fence'
    | 'validUntil'
  >
>;

const COUNTS: readonly ParamField[] = ['epoch', 'revision', 'generation', 'fence'];
const NOT_BELOW_ZERO: readonly string[] = [
  ...['rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate'],
  ...['safeRate', 'safeInFlight', 'lostAfterMs', 'lostOverMs'],
];
const WORDS: Partial<Record<ParamField, readonly string[]>> = {
  mode: MODES,
  state: ['closed', 'open', 'half-open', 'recovering'] satisfies LimiterState[],
};

/**
 * HGETALL reply → Params, or null when the hash is missing. A field that is missing or garbage is a typed error.
 * Twin of `lua/lib/params.lua`: where one reads params, the other must.
 */
export function parseParams(hash: Record<string, string>): Params | null {
  if (Object.keys(hash).length === 0) return null;
  const out: Record<string, string | number> = {};
  for (const field of PARAM_FIELDS) {
    const text = hash[field] ?? LATER[field];
    if (text === undefined) throw corrupt(field, 'missing');
    if (TEXT_FIELDS.has(field)) {
      if (WORDS[field]?.includes(text) === false) throw corrupt(field, JSON.stringify(text));
      out[field] = text;
      continue;
    }
    const value = /^[\d.eE+-]+$/.test(text) ? Number(text) : Number.NaN;
    const count = COUNTS.includes(field);
    if (
      !Number.isFinite(value) ||
      (count && !(Number.isInteger(value) && value <= 2 ** 53)) ||
      (value < 0 && (count || NOT_BELOW_ZERO.includes(field)))
    ) {
      throw corrupt(field, JSON.stringify(text));
    }
    out[field] = value;
  }
  return out as unknown as Params;
}

function corrupt(field: string, what: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_PARAMS_CORRUPT',
    `params field ${field} is ${what.slice(0, 80)}, so the params cannot be read and services use the numbers in their own code. A running daemon creates them anew from its policy.`,
  );
}
