/** Whether a limiter's turn may decide at all: not while the clocks it lives by are minutes apart. Stage: daemon. */
import type { Reason } from '../decide/reasons.js';
import type { Decision, InForceView } from '../decide/types.js';
import type { Readings } from '../sense/readings.js';
import { apart } from '../sense/skew.js';
import type { ClockWatch } from './clock-watch.js';

export interface ClockHold {
  /** Why nothing is decided at this turn; null: the clocks agree well enough. */
  reason(): string | null;
  /** What the services say of their clocks, at each turn. */
  see(telemetry: Readings['telemetry']): void;
  /** How far Redis's clock is ahead of the service furthest off, ms; 0 within a second. */
  readonly servicesMs: number;
}

/** Of one process with a wrong clock people are told; if most are off, it is Redis's that is wrong, or all of theirs. */
export function createClockHold(clocks: ClockWatch): ClockHold {
  let servicesMs = 0;
  let far = false;
  return {
    reason() {
      if (clocks.heldFor !== null || !far) return clocks.heldFor;
      return `Redis's clock is ${apart(servicesMs, "the services'")}`;
    },
    see(telemetry) {
      // Nobody reported: what was said last still holds.
      if (telemetry.kind === 'missing') return;
      servicesMs = telemetry.clockSkewMs ?? 0;
      far = telemetry.clocksFar === true;
    },
    get servicesMs() {
      return servicesMs;
    },
  };
}

export const CLOCK_SKEW = 'clock_skew' satisfies Reason;

export function heldSentence(why: string): string {
  return `${why}: nothing is decided until they agree.`;
}

/** In place of a turn of the law: the limits stay as they are. */
export function heldDecision({ target, state }: InForceView, why: string): Decision {
  const { rate, capacity, inFlightMax } = target;
  return {
    ...{ state, rate, capacity, inFlightMax },
    ...{ change: false, cause: 'law', reason: CLOCK_SKEW, why, sentence: heldSentence(why) },
    ...{ terms: {}, verdicts: [] },
  };
}
