/** Which limiters' turns fail, and whether Redis is away: each told once until it works again. Stage: daemon. */
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import type { Metrics } from '../report/metrics.js';

export interface TurnFailures {
  failed(limiter: string, error: unknown): void;
  worked(limiter: string): void;
  /** What it says, while turns fail for want of Redis; null: the last turn reached it. */
  redisAway(): string | null;
}

/** An outage of Redis is one line a limiter, not one a second. */
export function createTurnFailures({
  log,
  metrics,
}: {
  log: Logger;
  metrics: Metrics;
}): TurnFailures {
  const failing = new Set<string>();
  let away: string | null = null;
  return {
    failed(limiter, error) {
      metrics.errors.inc({ limiter });
      const { message } = error as Error;
      if (error instanceof FlyballError) metrics.auditFailures.inc({ limiter });
      else {
        metrics.redisUp.set(0);
        away = message;
      }
      if (failing.has(limiter)) return;
      failing.add(limiter);
      log.error(
        { event: 'tick_failed', limiter, err: error },
        `The turn of ${limiter} failed: ${message}`,
      );
    },
    worked(limiter) {
      away = null;
      metrics.redisUp.set(1);
      if (failing.delete(limiter)) log.info({ event: 'tick_recovered', limiter });
    },
    redisAway: () => away,
  };
}
