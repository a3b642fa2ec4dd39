/** Whether something holds long enough to be told, and is over for long enough to be taken back. Stage: report. */

export interface Condition {
  firing: boolean;
  /** ms since which it has been other than what was told; null: it is as told. */
  otherSinceMs: number | null;
}

export const QUIET: Condition = { firing: false, otherSinceMs: null };

export interface Patience {
  /** ms for which it must hold before it is told. */
  afterMs: number;
  /** ms for which it must be over before that is told. */
  overMs: number;
}

/** `holds` null: unknown, which moves nothing. */
export function turnCondition(
  before: Condition,
  holds: boolean | null,
  nowMs: number,
  patience: Patience,
): { condition: Condition; turned: 'fired' | 'cleared' | null } {
  if (holds === null) return { condition: before, turned: null };
  if (holds === before.firing) {
    return { condition: { firing: before.firing, otherSinceMs: null }, turned: null };
  }
  // A clock that was set back begins anew rather than wait for the old time.
  const sinceMs = Math.min(before.otherSinceMs ?? nowMs, nowMs);
  const neededMs = holds ? patience.afterMs : patience.overMs;
  if (nowMs - sinceMs < neededMs) {
    return { condition: { firing: before.firing, otherSinceMs: sinceMs }, turned: null };
  }
  return {
    condition: { firing: holds, otherSinceMs: null },
    turned: holds ? 'fired' : 'cleared',
  };
}
