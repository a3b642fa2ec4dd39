/** The local breaker of one upstream: opossum keeps count, the fleet's breaker leads. Stage: enforce. */
import CircuitBreaker from 'opossum';
import type { LimiterState } from '../redis/params.js';

export type CircuitState = 'closed' | 'open' | 'half-open';

export interface CircuitOptions {
  /** Calls within the window before it may open. */
  volumeThreshold: number;
  /** It opens above this share of failures, 0 … 1. */
  errorRatio: number;
  windowMs: number;
  /** From open to a single probe. */
  openMs: number;
  onOpen: () => void;
}

/** A call that was let in. */
export interface Entry {
  /** It ended well or not. Results from before the breaker last opened are ignored. */
  settle(good: boolean): void;
  /** It ended without a word on the upstream: denied, cancelled. */
  leave(): void;
}

export interface Circuit {
  readonly state: CircuitState;
  /** null: refused here. What the fleet has opened is not refused here: the take tells when that ends. */
  enter(): Entry | null;
  /** What a take has shown of the fleet's breaker. */
  follow(fleet: LimiterState, denied: boolean): void;
  /** ms until a probe may go; 0: at once. */
  retryAfterMs(nowMs: number): number;
  close(): void;
}

/**
 * opossum is told of outcomes, it does not run the calls. So none of its ways to a wrong state is open: a probe that
 * never settles, a success of a call begun before the trip, a filtered error that counts as a success. And one that has
 * closed is made anew: opossum's own window keeps the failures of before, so that the next single one would open it.
 */
export function createCircuit(options: CircuitOptions, now: () => number): Circuit {
  const { openMs } = options;
  let breaker = create();

  /** Opened since the start: tells results of before the last time. */
  let opened = 0;
  let openedMs = 0;
  let byFleet = false;
  let probing = false;

  function create(): CircuitBreaker<[boolean], void> {
    const made = new CircuitBreaker(
      async (good: boolean) => {
        if (!good) throw new Error('failed');
      },
      {
        timeout: false,
        volumeThreshold: options.volumeThreshold,
        errorThresholdPercentage: options.errorRatio * 100,
        rollingCountTimeout: options.windowMs,
        resetTimeout: openMs,
        rollingPercentilesEnabled: false,
        enableSnapshots: false,
      },
    );
    made.on('open', () => {
      opened += 1;
      openedMs = now();
      probing = false;
      if (!byFleet) options.onOpen();
    });
    made.on('close', () => {
      probing = false;
      breaker = create();
      made.shutdown();
    });
    return made;
  }

  const state = (): CircuitState => {
    if (breaker.closed) return 'closed';
    return byFleet || breaker.opened ? 'open' : 'half-open';
  };

  return {
    get state() {
      return state();
    },
    enter() {
      const at = state();
      if (!byFleet && (at === 'open' || (at === 'half-open' && probing))) return null;
      const probe = !byFleet && at === 'half-open';
      if (probe) probing = true;
      const since = opened;
      let over = false;
      const end = () => {
        const first = !over;
        over = true;
        if (first && probe && since === opened) probing = false;
        return first && since === opened && !byFleet && !breaker.opened;
      };
      return {
        settle(good) {
          // In half-open the probe alone has a say.
          if (end() && (breaker.closed || probe)) breaker.fire(good).catch(() => {});
        },
        leave: () => void end(),
      };
    },
    follow(fleet, denied) {
      if (denied) {
        byFleet = true;
        breaker.open();
      } else if (byFleet && (fleet === 'closed' || fleet === 'recovering')) {
        byFleet = false;
        breaker.close();
      }
    },
    retryAfterMs: (nowMs) => (breaker.opened ? Math.max(0, openedMs + openMs - nowMs) : 0),
    close: () => breaker.shutdown(),
  };
}
