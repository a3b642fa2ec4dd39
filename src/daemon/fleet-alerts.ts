/** What concerns all limiters, as alerts: Redis away, keys thrown away, policy files that do not load, leases lost. Stage: daemon. */
import type { Clock } from '../clock.js';
import { formatFault, type PolicyFault } from '../errors.js';
import type { AlertKind } from '../policy/notify-schema.js';
import { type Alert, severityOf } from '../report/notify/alert.js';
import { type Condition, type Patience, QUIET, turnCondition } from '../report/notify/condition.js';
import type { Notifier } from '../report/notify/notifier.js';
import type { Eviction } from './evictions.js';

export interface FleetAlerts {
  evicted(keys: number, eviction: Eviction): void;
  leaseLost(limiter: string, fence: number, detail: string): void;
  close(): void;
}

export interface FleetFacts {
  redisAway: string | null;
  faults: readonly PolicyFault[];
}

const LOOK_MS = 1_000;
const REDIS_AWAY: Patience = { afterMs: 5_000, overMs: 5_000 };
const POLICY_FAILED: Patience = { afterMs: 0, overMs: 0 };
/** Evictions of one minute are one alert. */
const MINUTE_MS = 60_000;

export function createFleetAlerts(options: {
  owner: string;
  clock: Clock;
  notifier: Notifier;
  facts: () => FleetFacts;
}): FleetAlerts {
  const { owner, clock, notifier, facts } = options;
  const conditions = new Map<string, Condition>();
  const words = new Map<string, { why: string; look: string; what: string }>();

  function raise(
    alert: Pick<Alert, 'key' | 'kind' | 'state' | 'what' | 'why' | 'look'> & Partial<Alert>,
  ) {
    const severity = alert.state === 'resolved' ? 'info' : severityOf(alert.kind);
    const { limiter = null } = alert;
    const who = `seen by ${owner}`;
    const rest = { owner: null, numbers: [], undo: null, atMs: clock.nowMs() };
    notifier.raise([{ ...rest, severity, who, ...alert, limiter }]);
  }

  function turn(kind: AlertKind, key: string, holds: boolean, patience: Patience): void {
    const was = conditions.get(key) ?? QUIET;
    const { condition, turned } = turnCondition(was, holds, clock.monotonicMs(), patience);
    conditions.set(key, condition);
    const of = words.get(key);
    if (turned === null || of === undefined) return;
    const state = turned === 'fired' ? 'firing' : 'resolved';
    raise({ key, kind, state, ...of });
    if (state === 'firing') return;
    conditions.delete(key);
    words.delete(key);
  }

  function look(): void {
    const { redisAway, faults } = facts();
    const away = 'flyball/redis_away';
    if (redisAway !== null) {
      const what = 'Redis does not answer the daemon';
      words.set(away, { what, why: redisAway, look: 'flyball doctor' });
    }
    turn('redis_away', away, redisAway !== null, REDIS_AWAY);

    const files = new Map<string, PolicyFault>();
    for (const fault of faults) if (!files.has(fault.file)) files.set(fault.file, fault);
    for (const [file, fault] of files) {
      const key = `flyball/policy_failed/${file}`;
      const what = `${file} does not load; the adopted policy stays in force`;
      words.set(key, { what, why: formatFault(fault), look: 'flyball check' });
      if (!conditions.has(key)) conditions.set(key, QUIET);
    }
    for (const key of [...conditions.keys()]) {
      if (!key.startsWith('flyball/policy_failed/')) continue;
      turn(
        'policy_failed',
        key,
        files.has(key.slice('flyball/policy_failed/'.length)),
        POLICY_FAILED,
      );
    }
    notifier.sees([...conditions.keys()].filter((key) => conditions.get(key)?.firing));
  }
  const timer = setInterval(look, LOOK_MS);
  timer.unref();

  return {
    evicted(keys, { address, before, now, policy }) {
      const what = `Redis at ${address} has evicted ${keys} keys`;
      const why =
        'its memory is full, and limits may have been forgotten: give it more, or Flyball a server of its own';
      const key = `flyball/evictions/${address}/${Math.floor(clock.nowMs() / MINUTE_MS)}`;
      const numbers: Alert['numbers'] = [
        ['evicted keys', `${before} → ${now}`],
        ['maxmemory-policy', policy],
      ];
      raise({ key, kind: 'evictions', state: 'event', what, why, numbers, look: 'flyball doctor' });
    },
    leaseLost(limiter, fence, detail) {
      const what = `this daemon lost the lease (token ${fence})`;
      const why = `Redis refused its write: ${detail}. It may have been paused, cut off, or slower than the lease; who holds the lease now leads`;
      const key = `${limiter}/lease_lost/${fence}`;
      raise({
        key,
        limiter,
        kind: 'lease_lost',
        state: 'event',
        what,
        why,
        look: `flyball status ${limiter}`,
      });
    },
    close: () => clearInterval(timer),
  };
}
