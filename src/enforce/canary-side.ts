/** The limiter of a canary within a service: made when it first decides, closed a while after it has ended. Stage: enforce. */
import { randomBytes } from 'node:crypto';
import { canaryName } from '../redis/canary.js';
import type { LimiterParts } from './limiter-parts.js';
import type { LimiterOptions } from './options.js';
import { limiterOfId } from './refund-id.js';
import { createWiring } from './wiring.js';

export interface CanarySide {
  /** Who decides for this subject while there is a canary; null: the limiter itself. */
  decides(subject: string | null): LimiterParts | null;
  /** Who made a decision, by its id. */
  ofId(id: string): LimiterParts;
  /** What this process has made; null: none so far, or it is closed. */
  readonly made: LimiterParts | null;
  close(): Promise<void>;
}

export function createCanarySide(own: LimiterParts, options: LimiterOptions): CanarySide {
  const { adopted, clock, time, resolved } = own;
  let made: LimiterParts | null = null;
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

  function isOver(): boolean {
    const nowMs = time.nowMs(clock.monotonicMs()) ?? clock.nowMs();
    return adopted.canary === undefined || nowMs >= adopted.canary.until;
  }

  return {
    decides(subject) {
      const { canary } = adopted;
      if (canary === undefined || !canary.reaches(subject) || isOver()) return null;
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
      clearTimeout(ending);
      const side = made;
      made = null;
      await side?.close();
    },
  };
}
