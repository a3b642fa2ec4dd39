/** All that a daemon tells of what happens: one notifier, and whom its policies name. Stage: daemon. */
import { createNotifier, type Notifier } from '../report/notify/notifier.js';
import { createFleetAlerts, type FleetAlerts, type FleetFacts } from './fleet-alerts.js';
import type { LimiterDeps, ManagedLimiter } from './managed-limiter.js';

export interface Alerts {
  notifier: Notifier;
  fleetAlerts: FleetAlerts;
  /** Sends what is on its way, within a second or two. */
  close(): Promise<void>;
}

export function createAlerts(
  daemon: Pick<LimiterDeps, 'redis' | 'owner' | 'clock' | 'log' | 'metrics'> & {
    prefix: string;
    env: NodeJS.ProcessEnv;
    limiters: ReadonlyMap<string, ManagedLimiter>;
    facts: () => FleetFacts;
  },
): Alerts {
  const { limiters, owner, clock, facts } = daemon;

  /** Each once, whoever names it. */
  function everybody() {
    const all = [...limiters.values()].flatMap((limiter) => limiter.notify);
    return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
  }

  function destinationsOf(name: string | null) {
    return name === null ? everybody() : (limiters.get(name)?.notify ?? null);
  }

  const notifier = createNotifier({ ...daemon, destinationsOf });
  const fleetAlerts = createFleetAlerts({ owner, clock, notifier, facts });
  return {
    notifier,
    fleetAlerts,
    close() {
      fleetAlerts.close();
      return notifier.close();
    },
  };
}
