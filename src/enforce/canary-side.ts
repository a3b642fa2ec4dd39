/** The limiter of a canary within a service: made when it first decides, closed a while after it has ended. Stage: enforce. */
import { randomBytes } from 'node:crypto';
import { canaryName, whyRests } from '../redis/canary.js';
import type { LimiterParts } from './limiter-parts.js';
import type { LimiterOptions } from './options.js';
import { limiterOfId } from './refund-id.js';
import { createWiring } from './wiring.js';

export interface CanarySide {
  /** Who decides for this subject while there is a canary; null: the limiter itself, as once this is closed. */
  decides(subject: string | null): LimiterParts | null;
  /** Who made a decision, by its id. */
  ofId(id: string): LimiterParts;
  /** What this process has made; null: none so far, or it is closed. */
  readonly made: LimiterParts | null;
  close(): Promise<void>;
}

export function createCanarySide(own: LimiterParts, options: LimiterOptions): CanarySide {
  const { adopted, clock, time, resolved, view } = own;
  let made: LimiterParts | null = null;
  let closed = false;
  let ending: ReturnType<typeof setTimeout> | undefined;

  function make(percent: number): LimiterParts {
    if (made !== null) return made;
    const { url: _, rate, capacity, inFlightMax, ...rest } = options;
    const share = percent / 100;
    made = createWiring(
      {
        ...rest,
        name: canaryName(resolved.name),
        redis: own.redis,
        // Only until its own numbers are known.
        ...(rate === undefined ? {} : { rate: rate * share }),
        ...(capacity === undefined ? {} : { capacity: Math.max(1, capacity * share) }),
        ...(inFlightMax ? { inFlightMax: Math.max(1, Math.round(inFlightMax * share)) } : {}),
        // Takes are spans of the limiter that was asked.
        tracer: false,
      },
      `${process.pid.toString(36)}-${randomBytes(5).toString('hex')}`,
    );
    watchEnd();
    return made;
  }

  /** Requests that it admitted still end there. */
  function watchEnd(): void {
    ending = setTimeout(() => {
      if (adopted.canary !== undefined && !isOver()) return watchEnd();
      const side = made;
      made = null;
      void side?.close();
    }, resolved.abandonedAfterMs);
    ending.unref();
  }

  function redisMs(): number {
    return time.nowMs(clock.monotonicMs()) ?? clock.nowMs();
  }

  function isOver(): boolean {
    return adopted.canary === undefined || redisMs() >= adopted.canary.until;
  }

  /** As far as is known here. */
  function rests(nowMs: number): boolean {
    const { state = 'closed', mode = 'auto' } = view.current ?? {};
    return whyRests({ state, mode, ...adopted.holds }, nowMs) !== null;
  }

  return {
    decides(subject) {
      const { canary } = adopted;
      // A take that comes while its limiter closes would make one that nobody closes.
      if (closed || canary === undefined || !canary.reaches(subject)) return null;
      const nowMs = redisMs();
      if (nowMs >= canary.until || rests(nowMs)) return null;
      const side = make(canary.percent);
      if (own.inFlight.reports) side.inFlight.setReports();
      return side;
    },
    ofId(id) {
      const name = limiterOfId(id);
      return name === canaryName(resolved.name) ? make(adopted.canary?.percent ?? 1) : own;
    },
    get made() {
      return made;
    },
    async close() {
      closed = true;
      clearTimeout(ending);
      const side = made;
      made = null;
      await side?.close();
    },
  };
}
