/** One limiter as its daemon holds it: what it needs, and what the daemon may ask of it. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { LoadedPolicy } from '../actuate/adopt.js';
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import type { Destination } from '../policy/notify-schema.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Metrics } from '../report/metrics.js';
import type { Notifier } from '../report/notify/notifier.js';
import type { LimiterStatus } from '../report/status.js';
import type { SourcePool } from '../sense/source-pool.js';
import type { ClockWatch } from './clock-watch.js';
import type { EvictionWatch } from './evictions.js';
import type { FleetAlerts } from './fleet-alerts.js';
import type { SpendChange } from './fleet-budget.js';
import type { Membership } from './membership.js';
import type { ServerWatch } from './server-watch.js';

export interface LimiterDeps {
  redis: RedisClient;
  address: LimiterAddress;
  /** `host:pid:random` of this daemon. */
  owner: string;
  /** Its place among the daemons that live. */
  members: Pick<Membership, 'rank' | 'settled'>;
  tickMs: number;
  leaseMs: number;
  clock: Clock;
  /** What all limiters of this daemon read. */
  sources: SourcePool;
  clocks: ClockWatch;
  /** What Redis has thrown away. */
  evictions: Pick<EvictionWatch, 'of'>;
  /** Which Redis server serves which limiter. */
  servers: ServerWatch;
  notifier: Notifier;
  fleetAlerts: FleetAlerts;
  /** What the whole fleet may change; null: as much as it wants. */
  spend: SpendChange | null;
  /** Told of each status that was stored. */
  told?: (limiter: string, status: LimiterStatus) => void;
  log: Logger;
  metrics: Metrics;
  /** Where the file here stands to the adopted policy, and what is wrong with files: for the status key. */
  fileState: (
    adoptedHash: string,
    tried?: string,
  ) => {
    file: 'same' | 'drift' | 'pending' | 'none';
    faults: string[];
  };
}

export interface ManagedLimiter {
  readonly address: LimiterAddress;
  /** The hash of the adopted policy, once it has been read. */
  readonly adoptedHash: string | null;
  /** A name in the registry and no more, as the last turn saw it: no params, and no policy to make them from. */
  readonly empty: boolean;
  /** Does this daemon hold the lease, as far as it knows? */
  readonly leads: boolean;
  /** It is for others to lead it, and to stand by: this daemon looks at it now and then. */
  readonly watches: boolean;
  /** Where the adopted policy sends alerts. */
  readonly notify: readonly Destination[];
  /** One turn. Never called while the last one runs. */
  tick(): Promise<void>;
  /** What is done by schedule, if it is overdue and this daemon leads. Never rejects. */
  runJobs(): Promise<void>;
  /** Adopt this policy at the next turn: its file has changed. */
  offer(loaded: LoadedPolicy): void;
  /** Ends the sampler and gives the lease back. */
  close(): Promise<void>;
}
