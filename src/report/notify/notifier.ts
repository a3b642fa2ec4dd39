/** Alerts on their way out: told once in the fleet, to whom the policy says, never waited for by the loop. Stage: report. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.js';
import type { Logger } from '../../log.js';
import type { Destination } from '../../policy/notify-schema.js';
import type { RedisClient } from '../../redis/run-script.js';
import type { Metrics } from '../metrics.js';
import { type Alert, textOf } from './alert.js';
import { attempt } from './attempt.js';
import { createKnownAlerts } from './known-alerts.js';
import { createOutbox, type Outbox } from './outbox.js';
import { nameOf, resolveTarget } from './target.js';
import { EMAIL, REPEAT_MS, TEMPLATES } from './templates.js';

export interface Notifier {
  /** Tells what is new; returns at once, never throws. */
  raise(alerts: readonly Alert[], destinations: readonly Destination[]): void;
  /** Keys of what is known to be firing of a limiter: for who begins to watch it. */
  firing(limiter: string): Promise<string[]>;
  /** Sends what is on its way, for at most a second or two. */
  close(): Promise<void>;
}

export interface NotifierOptions {
  redis: RedisClient;
  prefix: string;
  env: NodeJS.ProcessEnv;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  /** Whose alerts this daemon repeats, and to whom; null: another leads it. */
  destinationsOf(limiter: string | null): readonly Destination[] | null;
}

const DEADLINE_MS = 5_000;
const GRACE_MS = 1_500;
/** What still fires is told again after so long. */
const REMIND_MS = 4 * 3_600_000;
/** Events are known for so long, then forgotten. */
const EVENT_KEPT_MS = 86_400_000;

export function createNotifier(options: NotifierOptions): Notifier {
  const { redis, prefix, env, log, metrics, clock, destinationsOf } = options;
  const known = createKnownAlerts(redis, prefix);
  const outboxes = new Map<string, Outbox>();
  const telling = new Set<Promise<void>>();

  function outboxFor(destination: Destination): Outbox {
    const key = JSON.stringify(destination);
    const there = outboxes.get(key);
    if (there !== undefined) return there;
    const name = nameOf(destination);
    const { perMinute, merges } = destination.to === 'email' ? EMAIL : TEMPLATES[destination.to];
    const outbox = createOutbox({
      perMinute: destination.perMinute ?? perMinute,
      merges,
      clock,
      random: Math.random,
      newId: randomUUID,
      async send(alert, id) {
        // Resolved at each attempt: a secret may have been put right meanwhile.
        const resolved = resolveTarget(destination, env);
        if ('fault' in resolved) return { status: 'failed', why: resolved.fault, retry: false };
        const { target, secrets } = resolved;
        const nowMs = clock.nowMs();
        return attempt({ alert, target, secrets, id, nowMs, deadlineMs: DEADLINE_MS });
      },
      onEnd(alert, end, why) {
        metrics.notifications.inc({ to: destination.to, outcome: end });
        if (end === 'sent' || end === 'merged') return;
        log.error(
          { event: 'notify_failed', to: name, kind: alert.kind, limiter: alert.limiter },
          `An alert to ${name} was not delivered: ${why}. It said: ${textOf(alert).split('\n')[0]}. Try: flyball notify test`,
        );
      },
    });
    outboxes.set(key, outbox);
    return outbox;
  }

  function put(alert: Alert, destinations: readonly Destination[]): void {
    for (const destination of destinations) {
      if (destination.on !== undefined && !destination.on.includes(alert.kind)) continue;
      outboxFor(destination).put(alert);
    }
  }

  async function tell(alert: Alert, destinations: readonly Destination[]): Promise<void> {
    if (alert.kind === 'retrip') await known.replace(alert);
    else if (
      alert.state === 'resolved' ? !(await known.end(alert.key)) : !(await known.claim(alert))
    )
      return;
    log.warn(
      { event: 'alert', kind: alert.kind, state: alert.state, limiter: alert.limiter },
      textOf(alert).split('\n').slice(0, 2).join('; '),
    );
    metrics.alerts.inc({ limiter: alert.limiter ?? '', kind: alert.kind, state: alert.state });
    put(alert, destinations);
  }

  /** Reminds of what still fires, repeats it to who takes silence for its end, forgets events of yesterday. */
  async function sweep(): Promise<void> {
    const nowMs = clock.nowMs();
    const alerts = await known.all();
    const over = alerts.filter(
      ({ state, atMs }) => state === 'event' && nowMs - atMs > EVENT_KEPT_MS,
    );
    await known.forget(over.map(({ key }) => key));
    for (const alert of alerts) {
      if (alert.state !== 'firing') continue;
      const destinations = destinationsOf(alert.limiter);
      if (destinations === null) continue;
      const ageMs = nowMs - alert.atMs;
      const due = Math.floor(ageMs / REMIND_MS) > Math.floor((ageMs - REPEAT_MS) / REMIND_MS);
      put(
        alert,
        destinations.filter(({ to }) => (due && ageMs > REPEAT_MS) || repeats(to)),
      );
    }
  }
  const timer = setInterval(() => void sweep().catch(() => {}), REPEAT_MS);
  timer.unref();

  return {
    raise(alerts, destinations) {
      for (const alert of alerts) {
        const told = tell(alert, destinations).catch((error) =>
          log.error({ event: 'notify_failed', err: error }, (error as Error).message),
        );
        telling.add(told);
        void told.finally(() => telling.delete(told));
      }
    },
    async firing(limiter) {
      const alerts = await known.all();
      return alerts
        .filter((alert) => alert.limiter === limiter && alert.state === 'firing')
        .map(({ key }) => key);
    },
    async close() {
      clearInterval(timer);
      await Promise.all(telling);
      await Promise.all([...outboxes.values()].map((outbox) => outbox.close(GRACE_MS)));
    },
  };
}

function repeats(to: Destination['to']): boolean {
  return to !== 'email' && TEMPLATES[to].repeats === true;
}
