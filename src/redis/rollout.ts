/** Whom a limiter is enforced for so far, as policy and params say it. Stage: policy, actuate, enforce. */

export interface Rollout {
  /** Share of the subjects, 0 to 100, at most two decimals. */
  percent: number;
  /** These are enforced first, whatever the share. */
  subjects?: string[];
  /** `subject`: a stable part of the subjects. `request`: a random part of the requests. Default `subject`. */
  by?: 'subject' | 'request';
  /**
   * Set by a person, in place of a policy whose own rollout has this mark; it stands until that becomes another.
   * Absent: the policy's.
   */
  over?: string;
}

/** The longest that params keep. */
export const ROLLOUT_MAX_BYTES = 8192;
/** Of these parts of 10,000, `percent` × 100 are enforced. */
export const ROLLOUT_PARTS = 10_000;

/** Only what is stated, in one order: equal rollouts are equal texts. Empty for none. */
export function rolloutText(rollout: Rollout | undefined): string {
  if (rollout === undefined) return '';
  const { percent, subjects = [], by, over } = rollout;
  return JSON.stringify({
    percent,
    ...(subjects.length > 0 && { subjects }),
    ...(by === 'request' && { by }),
    ...(over !== undefined && { over }),
  });
}

/** null: for all. So says text that cannot be read, too: a limiter that stands must not open by a garbled field. */
export function parseRollout(text: string | null | undefined): Rollout | null {
  if (!text) return null;
  let value: Partial<Record<keyof Rollout, unknown>> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { percent, subjects, by, over } = value;
  if (typeof percent !== 'number' || !(percent >= 0 && percent <= 100)) return null;
  return {
    percent,
    ...(Array.isArray(subjects) && { subjects: subjects.filter((s) => typeof s === 'string') }),
    ...(by === 'request' && { by }),
    ...(typeof over === 'string' && { over }),
  };
}

/** Is anybody left out? */
export function isPartial(rollout: Rollout | null): rollout is Rollout {
  return rollout !== null && rollout.percent < 100;
}

/** `10 % of the subjects, and 2 by name`; `all`. */
export function rolloutWords(rollout: Rollout | null): string {
  if (!isPartial(rollout)) return 'all';
  const { percent, subjects = [], by } = rollout;
  const named = subjects.length === 0 ? '' : `, and ${subjects.length} by name`;
  return `${percent} % of the ${by === 'request' ? 'requests' : 'subjects'}${named}`;
}
