/** A version of a policy that runs for a percent of the subjects first, as params and services know it. Stage: policy, actuate, enforce, daemon. */

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
  /** It is over, and this version is not tried again before its file changes. */
  ended?: 'failed' | 'unproven' | 'stopped';
}

/** Without evidence it waits up to so many times as long. */
export const CANARY_PATIENCE = 3;
const SUFFIX = '.canary';
const LONGEST_NAME = 64;

/** No policy may take this name: `limiter.name` must not end so. */
export function canaryName(limiter: string): string {
  return `${limiter}${SUFFIX}`;
}

export function isCanaryName(limiter: string): boolean {
  return limiter.endsWith(SUFFIX);
}

/** Is there room for the name of its canary? */
export function mayHaveCanary(limiter: string): boolean {
  return canaryName(limiter).length <= LONGEST_NAME;
}

export function canaryText(canary: Canary): string {
  const { policy, limiter, percent, since, forMs, until, ended } = canary;
  return JSON.stringify({ policy, limiter, percent, since, forMs, until, ...(ended && { ended }) });
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
  const { policy, limiter, percent, since, forMs, until, ended } = value;
  if (typeof policy !== 'string' || typeof limiter !== 'string') return null;
  if (typeof percent !== 'number' || !(percent > 0 && percent <= 100)) return null;
  if (typeof since !== 'number' || typeof forMs !== 'number' || typeof until !== 'number') {
    return null;
  }
  const over = ended === 'failed' || ended === 'unproven' || ended === 'stopped';
  return { policy, limiter, percent, since, forMs, until, ...(over && { ended }) };
}

/** Does it decide for its part of the subjects now? */
export function isTried(canary: Canary | null, nowMs: number): canary is Canary {
  return canary !== null && canary.ended === undefined && nowMs < canary.until;
}
