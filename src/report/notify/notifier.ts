/** Alerts on their way out: told once in the fleet, to whom the policy says, never waited for by the loop. Stage: report. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.js';
import type { Logger } from '../../log.js';
import type { AlertKind, Destination } from '../../policy/notify-schema.js';
import type { RedisClient } from '../../redis/run-script.js';
import type { Metrics } from '../metrics.js';
import { type Alert, ofItsLimiter, textOf } from './alert.js';
import { attempt } from './attempt.js';
import { createKnownAlerts, endedKey } from './known-alerts.js';
import { createOutbox, type Outbox } from './outbox.js';
import { createStanding, type Told } from './standing.js';
import { addressOf, nameOf, resolveTarget } from './target.js';
import { EMAIL, REPEAT_MS, TEMPLATES } from './templates.js';

export interface Notifier {
  /** Tells what is new; returns at once, never throws. */
  raise(alerts: readonly Alert[]): void;
  /** This daemon sees that these fire: what no daemon sees any more is over after some minutes. */
  sees(keys: Iterable<string>): void;
  /** Which of these keys are known to be firing: for who begins to watch them. */
  firing(keys: readonly string[]): Promise<string[]>;
  /** Looks after what fires. Each minute by itself. */
  sweep(): Promise<void>;
  /** Sends what is on its way, for at most a second or two. */
  close(): Promise<void>;
}

export interface NotifierOptions {
  redis: RedisClient;
  prefix: string;
  owner: string;
  env: NodeJS.ProcessEnv;
  log: Logger;
  metrics: Metrics;
  clock: Clock;
  /** Whom a limiter's policy names, or, for null, all policies; null: no such limiter is known here. */
  destinationsOf(limiter: string | null): readonly Destination[] | null;
}

const DEADLINE_MS = 5_000;
const GRACE_MS = 1_500;

export function createNotifier(options: NotifierOptions): Notifier {
  const { redis, prefix, owner, env, log, metrics, clock, destinationsOf } = options;
  const known = createKnownAlerts(redis, prefix);
  const mine = new Map<string, Told>();
  /** Whom this daemon told of the beginning, by key: they are told of the end, whatever the policy says by then. */
  const toldTo = new Map<string, readonly Destination[]>();
  const outboxes = new Map<string, Outbox>();
  /** By key, the newest: beginning and end of one are told in order. */
  const telling = new Map<string, Promise<void>>();

  function outboxFor(destination: Destination): Outbox {
    const to = addressOf(destination);
    const { perMinute, merges } = destination.to === 'email' ? EMAIL : TEMPLATES[destination.to];
    const most = destination.perMinute ?? perMinute;
    const key = `${most} ${to}`;
    const there = outboxes.get(key);
    if (there !== undefined) return there;
    const name = nameOf(destination);
    const outbox = createOutbox({
      perMinute: most,
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
        if (end === 'sent' || end === 'merged') return void confirm(alert);
        log.error(
          { event: 'notify_failed', to: name, kind: alert.kind, limiter: alert.limiter },
          `An alert to ${name} was not delivered: ${why}. It said: ${textOf(alert).split('\n')[0]}. Try: flyball notify test`,
        );
      },
    });
    outboxes.set(key, outbox);
    return outbox;
  }

  const recordOf = (alert: Alert, beat: number) => ({
    ...{ alert, keeper: owner, beat, remindedMs: clock.nowMs() },
  });

  /** Somebody has been told: whoever answers for it next need not tell it again. */
  async function confirm(alert: Alert): Promise<void> {
    if (alert.state === 'event') return known.put(recordOf(alert, 1));
    const told = mine.get(alert.key);
    if (told === undefined || told.known.beat > 0) return;
    told.known = { ...told.known, beat: 1 };
    await known.put(told.known);
  }

  /** To each address once, however many policies name it. */
  function put(alert: Alert, destinations: readonly Destination[], kinds: readonly AlertKind[]) {
    const addressed = new Map<string, Destination>();
    for (const destination of destinations) {
      const { on } = destination;
      if (on !== undefined && !kinds.some((kind) => on.includes(kind))) continue;
      const address = addressOf(destination);
      if (!addressed.has(address)) addressed.set(address, destination);
    }
    for (const destination of addressed.values()) outboxFor(destination).put(alert);
    return [...addressed.values()];
  }

  const peopleOf = (limiter: string | null) =>
    destinationsOf(limiter) ?? (destinationsOf(null) as readonly Destination[]);

  function announce(alert: Alert, kinds: readonly AlertKind[]): void {
    log.warn(
      { event: 'alert', kind: alert.kind, state: alert.state, limiter: alert.limiter },
      textOf(alert).split('\n').slice(0, 2).join('; '),
    );
    metrics.alerts.inc({ limiter: alert.limiter ?? '', kind: alert.kind, state: alert.state });
    const { key, limiter } = alert;
    const before = toldTo.get(key) ?? [];
    if (alert.state === 'resolved') {
      toldTo.delete(key);
      const now = before.length > 0 ? (destinationsOf(limiter) ?? []) : peopleOf(limiter);
      // Who was told of the beginning, whatever kinds they want now.
      const told = before.map(({ on: _, ...destination }) => destination as Destination);
      put(alert, [...told, ...now], kinds);
      return;
    }
    const told = put(alert, peopleOf(limiter), kinds);
    const all = new Map([...before, ...told].map((each) => [addressOf(each), each]));
    if (alert.state === 'firing' && all.size > 0) toldTo.set(key, [...all.values()]);
    // There is nobody who could be told later.
    if (alert.state === 'event' && told.length === 0) void confirm(alert);
  }

  async function tellEnd(alert: Alert, onlyIfRemoved: boolean): Promise<void> {
    const told = mine.get(alert.key);
    // Before anything is waited for: nothing is written for it from here on.
    mine.delete(alert.key);
    standing.ended(alert.key);
    const ended = await known.end(alert.key);
    const kinds = [alert.kind];
    if (told !== undefined) kinds.push(told.known.alert.kind);
    if (ended !== 'unanswered' && ended.was !== null) kinds.push(ended.was.kind);
    // Of what one daemon alone watches, Redis may have forgotten the beginning.
    const alone = told?.told === true && alert.limiter !== null && !onlyIfRemoved;
    const removed = ended === 'unanswered' ? told?.told === true : ended.removed;
    if (removed || told?.unsaved || alone) {
      announce(alert, kinds);
      const began = (ended === 'unanswered' ? null : ended.was) ?? told?.known.alert;
      await keepEnded(alert, began?.atMs);
    } else toldTo.delete(alert.key);
  }

  /** For who looks back, for a day. */
  function keepEnded(alert: Alert, beganMs: number | undefined): Promise<void> {
    return known.put({
      ...recordOf({ ...alert, key: endedKey(alert.key), undo: null }, 1),
      ...(beganMs !== undefined && { beganMs }),
    });
  }

  async function tell(alert: Alert): Promise<void> {
    if (alert.state === 'resolved') return tellEnd(alert, false);
    const record = recordOf(alert, 0);
    const before = mine.get(alert.key);
    const told: Told = { known: record, told: before?.told ?? false, unsaved: false };
    if (alert.state === 'firing') {
      mine.set(alert.key, told);
      standing.sees([alert.key]);
    }
    if (alert.kind === 'retrip') {
      await known.put(record);
    } else {
      const claimed = await known.claim(record);
      if (claimed === 'known' || (claimed === 'unanswered' && told.told)) return;
      told.unsaved = claimed === 'unanswered';
    }
    told.told = true;
    announce(alert, [alert.kind]);
  }

  const standing = createStanding({
    ...{ owner, clock, known, mine },
    repeat(alert, all) {
      const destinations = peopleOf(alert.limiter);
      put(
        alert,
        destinations.filter(({ to }) => all || repeats(to)),
        // It is the trip that lasts.
        alert.kind === 'retrip' ? ['retrip', 'trip'] : [alert.kind],
      );
    },
    end: (alert) => tellEnd(alert, true),
    tell,
  });

  async function sweep(): Promise<void> {
    for (const [key, outbox] of outboxes) if (outbox.idle) outboxes.delete(key);
    await standing.sweep();
    for (const key of toldTo.keys()) if (!mine.has(key)) toldTo.delete(key);
  }
  const timer = setInterval(() => void sweep().catch(failed), REPEAT_MS);
  timer.unref();

  function failed(error: unknown): void {
    log.error({ event: 'notify_failed', err: error }, (error as Error).message);
  }

  return {
    raise(alerts) {
      for (const alert of alerts.map(ofItsLimiter)) {
        const { key } = alert;
        const before = telling.get(key) ?? Promise.resolve();
        const told = before.then(() => tell(alert)).catch(failed);
        telling.set(key, told);
        void told.then(() => telling.get(key) === told && telling.delete(key));
      }
    },
    sees: standing.sees,
    firing: known.firing,
    sweep,
    async close() {
      clearInterval(timer);
      const late = new Promise<void>((ok) => setTimeout(ok, GRACE_MS).unref());
      await Promise.race([Promise.all(telling.values()), late]);
      await Promise.all([...outboxes.values()].map((outbox) => outbox.close(GRACE_MS)));
    },
  };
}

function repeats(to: Destination['to']): boolean {
  return to !== 'email' && TEMPLATES[to].repeats === true;
}
