/** Which limiters' turns fail, and whether Redis is away: each told once until it works again. Stage: daemon. */
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import type { Metrics } from '../report/metrics.js';

export interface TurnFailures {
  failed(limiter: string, error: unknown): void;
  worked(limiter: string): void;
  /** What it says, while turns of any limiter fail for want of Redis, and of which; null: each reached it. */
  redisAway(): string | null;
}

const NAMED = 5;

/** An outage of Redis is one line a limiter, not one a second. */
export function createTurnFailures({
  log,
  metrics,
}: {
  log: Logger;
  metrics: Metrics;
}): TurnFailures {
  const failing = new Set<string>();
  /** By limiter: of a Cluster one server may be away, and the others answer. */
  const away = new Map<string, string>();
  return {
    failed(limiter, error) {
      metrics.errors.inc({ limiter });
      const { message } = error as Error;
      if (error instanceof FlyballError) metrics.auditFailures.inc({ limiter });
      else {
        metrics.redisUp.set(0);
        away.set(limiter, message);
      }
      if (failing.has(limiter)) return;
      failing.add(limiter);
      log.error(
        { event: 'tick_failed', limiter, err: error },
        `The turn of ${limiter} failed: ${message}`,
      );
    },
    worked(limiter) {
      away.delete(limiter);
      if (away.size === 0) metrics.redisUp.set(1);
      if (failing.delete(limiter)) log.info({ event: 'tick_recovered', limiter });
    },
    redisAway() {
      const [message] = away.values();
      if (message === undefined) return null;
      const names = [...away.keys()].slice(0, NAMED).join(', ');
      const more = away.size > NAMED ? ` and ${away.size - NAMED} more` : '';
      return `${message} (turns of ${names}${more})`;
    },
  };
}
