/** What the daemons tell of: alerts that fire, and those of the last day, each with its words and the way back. Stage: api. */
import { redisNowMs } from '../redis/redis-time.js';
import { type Alert, plain } from '../report/notify/alert.js';
import { type KnownAlert, readKnownAlerts } from '../report/notify/known-alerts.js';
import type { Session } from './limiters.js';

export interface AlertsView {
  /** Redis ms. */
  atMs: number;
  /** Those that fire first, the gravest before others; then the newest first. */
  alerts: AlertRecord[];
  /** There are more than were read. */
  more: boolean;
}

export interface AlertRecord
  extends Pick<Alert, 'kind' | 'severity' | 'limiter' | 'owner' | 'undo' | 'look'> {
  /** The same for as long as it lasts. */
  id: string;
  /** `event`: it has no end of its own; `resolved`: it is over. */
  state: 'firing' | 'event' | 'resolved';
  what: string;
  why: string;
  /** Who acted, or who saw it. */
  who: string;
  numbers: { name: string; value: string }[];
  /** Since when it holds, or when it happened; wall ms of who saw it. */
  sinceMs: number;
  /** When it was over; null: it fires, or is an event. */
  endedMs: number | null;
  /** The daemon that answers for it: it sees it, and tells of its end. */
  keeper: string;
}

/** A fleet whose every limiter fires is told by its gravest. */
const MOST_READ = 5_000;
const MOST_TOLD = 500;
const GRAVITY = ['critical', 'warning', 'info'];

/** Reads Redis alone: also what another daemon told, or one that is dead by now. */
export async function readAlerts({ redis, prefix }: Session): Promise<AlertsView> {
  const [atMs, known] = await Promise.all([
    redisNowMs(redis),
    readKnownAlerts(redis, prefix, MOST_READ),
  ]);
  const alerts = known.map(recordOf).sort(inOrder);
  return { atMs, alerts: alerts.slice(0, MOST_TOLD), more: known.length > MOST_TOLD };
}

function recordOf({ alert, keeper, beganMs }: KnownAlert): AlertRecord {
  const { key, kind, severity, state, limiter, owner, what, why, who, undo, look, atMs } = alert;
  const over = state === 'resolved';
  return {
    ...{ id: key, kind, severity, state, limiter },
    owner: owner === null ? null : plain(owner),
    ...{ what: plain(what), why: plain(why), who: plain(who) },
    numbers: alert.numbers.map(([name, value]) => ({ name: plain(name), value: plain(value) })),
    undo: undo === null ? null : plain(undo),
    look: plain(look),
    sinceMs: over ? (beganMs ?? atMs) : atMs,
    endedMs: over ? atMs : null,
    keeper,
  };
}

function inOrder(a: AlertRecord, b: AlertRecord): number {
  const fires = Number(b.state === 'firing') - Number(a.state === 'firing');
  if (fires !== 0) return fires;
  const graver = GRAVITY.indexOf(a.severity) - GRAVITY.indexOf(b.severity);
  if (a.state === 'firing' && graver !== 0) return graver;
  return (b.endedMs ?? b.sinceMs) - (a.endedMs ?? a.sinceMs);
}
