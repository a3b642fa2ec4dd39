/** The breaker as a pure transition table, and the events that time and outcomes raise. Stage: decide. */
import type { LimiterState } from '../redis/params.js';

export type BreakerEvent =
  /** A level was passed. */
  | 'trip'
  /** A level was passed, and the breaker takes away a part only. */
  | 'shed'
  /** `openUntil` has passed: by time alone, nobody writes. */
  | 'open_elapsed'
  | 'probes_passed'
  | 'probe_failed'
  /** Probes were admitted and none was answered in time. */
  | 'probe_deadline'
  /** The slow start has arrived, or the law took over. */
  | 'recovered'
  | 'none';

/**
 *            trip  shed        open_elapsed  probes_passed  probe_failed  probe_deadline  recovered
 * closed     open  recovering  ·             ·              ·             ·               ·
 * open       ·     ·           half-open     ·              ·             ·               ·
 * half-open  ·     ·           ·             recovering     open          open            ·
 * recovering open  ·           ·             ·              ·             ·               closed
 *
 * Everything else stays where it is: late news never moves a state it does not speak of.
 */
export const BREAKER_TABLE: Record<LimiterState, Partial<Record<BreakerEvent, LimiterState>>> = {
  closed: { trip: 'open', shed: 'recovering' },
  open: { open_elapsed: 'half-open' },
  'half-open': { probes_passed: 'recovering', probe_failed: 'open', probe_deadline: 'open' },
  recovering: { trip: 'open', recovered: 'closed' },
};

export function transition(state: LimiterState, event: BreakerEvent): LimiterState {
  return BREAKER_TABLE[state][event] ?? state;
}
