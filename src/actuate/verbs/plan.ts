/** What a person's verb would do, as plain data: shown first, then written. Pure. Stage: actuate. */
import type { Policy } from '../../policy/schema.js';
import { type Effective, effective, isActive, settled } from '../../redis/effective.js';
import type { ParamChange, Params } from '../../redis/params.js';
import type { SubjectOverride } from '../../redis/subject-override.js';
import type { EntryValues } from '../entry.js';

export { clamp } from '../../decide/bounds.js';

export const HOUR_MS = 3_600_000;
/** How long a person's hold lasts unless they say otherwise. */
export const DEFAULT_HOLD_MS = HOUR_MS;
/** `…Until` of a hold that only a person ends. */
export const UNTIL_ENDED = -1;

/** What was read for this plan; times are Redis's. */
export interface Facts {
  limiter: string;
  params: Params;
  nowMs: number;
  /** The adopted policy, when it is there and parses. */
  policy: Policy | null;
  /** What a person has said of single subjects, by their encoded names; absent: nothing. */
  overrides?: ReadonlyMap<string, SubjectOverride>;
  /** Name of a token, else `user@host (unverified)`. */
  actor: string;
}

/** How long a hold lasts: milliseconds, or until a person ends it. */
export type HoldFor = number | 'until-ended';

export interface VerbPlan {
  kind: 'change';
  /** Reason code of the audit entry. */
  reason: string;
  before: EntryValues;
  after: EntryValues;
  change: ParamChange;
  /** What is said of one subject, in place of a change. */
  override?: {
    subject: string;
    before: SubjectOverride | null;
    to: Omit<SubjectOverride, 'revision'> | null;
  };
  /**
   * The parts of `after` that a person's yes stands on. When the autopilot moves one of them in between, they
   * are shown the new plan; what it moves besides (where a freeze catches the rate, say) does not keep them
   * from acting in an incident.
   */
  agreed: readonly (keyof EntryValues)[];
  /** What else the yes stands on: when it has become another, they are shown the new plan. */
  basis?: string;
  /** `empty`: all buckets begin at 0, since a rate below the lowest planned one may outlive their TTL. */
  refloor?: 'empty';
  /** One sentence for the audit log, with numbers and the hold. */
  sentence: string;
  detail: Record<string, unknown>;
  /** What a person should know before saying yes: clamped values, an open breaker, no daemon. */
  notes: string[];
}

/** There is nothing to write, and why. */
export interface Nothing {
  kind: 'nothing';
  sentence: string;
}

export type Planner = (facts: Facts) => VerbPlan | Nothing;

/** Redis time when a hold of this length ends. */
export function holdUntil(nowMs: number, hold: HoldFor): number {
  return hold === 'until-ended' ? UNTIL_ENDED : Math.round(nowMs + hold);
}

/** `until 2026-05-04T13:02:11Z` or `until a person ends it`: entries speak UTC. */
export function untilText(untilMs: number): string {
  if (untilMs === UNTIL_ENDED) return 'until a person ends it';
  return `until ${new Date(untilMs).toISOString().replace(/\.\d+Z$/, 'Z')}`;
}

export interface Standing {
  now: Effective;
  /** What a person sees as now: the stored target, or while gliding the value the glide has reached. */
  values: EntryValues;
  /** Written with any change: where time alone has brought the limiter by now. */
  settled: ParamChange;
  pinned: boolean;
  frozen: boolean;
  /** Some daemon renews the heartbeat. */
  daemon: boolean;
}

/** Where the limiter stands, before a verb changes it. */
export function standing({ params, nowMs }: Pick<Facts, 'params' | 'nowMs'>): Standing {
  const now = effective(params, nowMs);
  const { mode, capacity } = params;
  const values: EntryValues = { mode, capacity, ...settled(params, now) };
  const { state, rate, inFlightMax } = values;
  // The state of this moment is always written: an open time that has run out must not begin again.
  const written: ParamChange = now.gliding ? { state, rate, inFlightMax } : { state };
  return {
    now,
    values,
    settled: written,
    pinned: isActive(params.pinnedUntil, nowMs),
    frozen: isActive(params.frozenUntil, nowMs),
    daemon: params.validUntil > nowMs,
  };
}

type Numbers = Pick<EntryValues, 'rate' | 'capacity' | 'inFlightMax'>;

/** `rate 64 → 80/s, capacity 128 → 160`; empty when no number changes. */
export function moved(before: Numbers, after: Numbers): string {
  const parts: string[] = [];
  if (before.rate !== after.rate) parts.push(`rate ${short(before.rate)} → ${short(after.rate)}/s`);
  if (before.capacity !== after.capacity)
    parts.push(`capacity ${short(before.capacity)} → ${short(after.capacity)}`);
  if (before.inFlightMax !== after.inFlightMax)
    parts.push(`in-flight cap ${cap(before.inFlightMax)} → ${cap(after.inFlightMax)}`);
  return parts.join(', ');
}

function cap(value: number): string {
  return value === 0 ? 'none' : short(value);
}

/** What happens to a limiter that nobody watches. A person's write is a sign of life, so the wait begins with it. */
export function goesSafe(p: Params): string {
  const goal = `rate ${short(p.safeRate)}/s${p.safeInFlight ? `, in-flight cap ${short(p.safeInFlight)}` : ''}`;
  return `No daemon is alive: after ${short(p.lostAfterMs / 1000)} s the limits glide to their safe values (${goal}).`;
}

export function short(value: number): string {
  return String(Number(value.toPrecision(6)));
}
