/** What all who call Redis for one limiter are given: the connection, its keys and clock, what is known, what is counted. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { KeyFinder } from './address.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { RedisTime } from './redis-time.js';
import type { Stats } from './stats.js';

export interface CallParts {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  view: InForceView;
  stats: Stats;
  clock: Clock;
  deadlineMs: number;
}
