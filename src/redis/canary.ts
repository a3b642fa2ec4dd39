/** A version of a policy that runs for a percent of the subjects first, as params and services know it. Stage: policy, actuate, enforce, daemon. */
import { effective, isActive } from './effective.js';
import type { LimiterState, Mode, Params } from './params.js';

export interface Canary {
  /** Hash of the version that is tried. */
  policy: string;
  /** The limiter that decides for them. */
  limiter: string;
  /** Share of the subjects, at most two decimals. */
  percent: number;
  /** Redis ms at which it began. */
  since: number;
  /** It is judged once this is over. */
  forMs: number;
  /** Redis ms from which services ask the limiter itself again, whoever lives. */
  until: number;
  /** Of the params of its limiter, which were made anew for it. */
  epoch: number;
  /** The person who asked for it; absent: a daemon, whose file says so. */
  by?: string;
  /** It is over, and this version is not tried again before its file changes. */
  ended?: 'failed' | 'unproven' | 'stopped';
}

/** Without evidence it waits up to so many times as long. */
export const CANARY_PATIENCE = 3;
const SUFFIX = '.canary';
const LONGEST_NAME = 64;
/** Of a person; params are no place for prose. */
const LONGEST_BY = 64;

/** No policy may take this name: `limiter.name` must not end so. */
export function canaryName(limiter: string): string {
  return `${limiter}${SUFFIX}`;
}

export function isCanaryName(limiter: string): boolean {
  return limiter.endsWith(SUFFIX);
}

/** Whose canary runs on the limiter of this name; null: it is no canary's. */
export function limiterOfCanary(name: string): string | null {
  return isCanaryName(name) ? name.slice(0, -SUFFIX.length) : null;
}

/** Is there room for the name of its canary? */
export function mayHaveCanary(limiter: string): boolean {
  return canaryName(limiter).length <= LONGEST_NAME;
}

export function canaryText(canary: Canary): string {
  const { policy, limiter, percent, since, forMs, until, epoch, by, ended } = canary;
  return JSON.stringify({
    ...{ policy, limiter, percent, since, forMs, until, epoch },
    ...(by !== undefined && { by: by.slice(0, LONGEST_BY) }),
    ...(ended && { ended }),
  });
}

/** null: none. So says text that cannot be read: the limiter itself decides for all. */
export function parseCanary(text: string | null | undefined): Canary | null {
  if (!text) return null;
  let value: Partial<Record<keyof Canary, unknown>> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { policy, limiter, percent, since, forMs, until, epoch, by, ended } = value;
  if (typeof policy !== 'string' || typeof limiter !== 'string') return null;
  if (typeof percent !== 'number' || !(percent > 0 && percent <= 100)) return null;
  if (typeof since !== 'number' || typeof forMs !== 'number' || typeof until !== 'number') {
    return null;
  }
  if (typeof epoch !== 'number') return null;
  const over = ended === 'failed' || ended === 'unproven' || ended === 'stopped';
  return {
    ...{ policy, limiter, percent, since, forMs, until, epoch },
    ...(typeof by === 'string' && { by }),
    ...(over && { ended }),
  };
}

/** Is it neither judged nor past its end? */
export function isTried(canary: Canary | null, nowMs: number): canary is Canary {
  return canary !== null && canary.ended === undefined && nowMs < canary.until;
}

/** Has its end not been written? */
export function goesOn(canary: Canary | null): canary is Canary {
  return canary !== null && canary.ended === undefined;
}

/** What lets the limiter itself decide for all while it lasts: how it stands, and until when a person holds it. */
export interface Standing {
  state: LimiterState;
  mode: Mode;
  pinnedUntil: number;
  frozenUntil: number;
}

/** Why a canary rests: what a person or the breaker says of the limiter binds all of its subjects. null: nothing does. */
export function whyRests(standing: Standing, nowMs: number): string | null {
  const { state, mode, pinnedUntil, frozenUntil } = standing;
  if (state !== 'closed') return `the limiter is ${state}`;
  if (mode === 'off' || mode === 'shadow') return `mode ${mode} admits all`;
  const held = isActive(pinnedUntil, nowMs) || isActive(frozenUntil, nowMs);
  return held ? 'a person holds the limiter' : null;
}

/** The same of what is stored, at a moment: time alone may have opened it half-way. */
export function restsAt(params: Params, nowMs: number): string | null {
  return whyRests({ ...params, state: effective(params, nowMs).state }, nowMs);
}
