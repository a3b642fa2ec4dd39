/** One limiter's turn as alerts: pure, so that what is told can be tested without anything that sends. Stage: report. */
import type { AlertKind } from '../../policy/notify-schema.js';
import { type Alert, severityOf } from './alert.js';
import { type Condition, type Patience, QUIET, turnCondition } from './condition.js';
import { farAboveUsual, learnUsual, NOTHING_USUAL, type Usual } from './usual.js';
import { EVENTS, type WordsFor, words } from './words.js';

/** A change of the params: who made it, why, in a sentence. */
export interface Change {
  epoch: number;
  revision: number;
  who: string;
  reason: string;
  sentence: string;
  /** When Redis stored it, ms. */
  atMs: number;
  /** Run id of the Redis server that took over; null: the entry tells of none. */
  server: string | null;
}

/** What a turn of the leader knows. Times are wall ms of Redis. */
export interface WatchFacts {
  limiter: string;
  owner: string | null;
  /** The daemon that sees it. */
  daemon: string;
  nowMs: number;
  state: 'closed' | 'open' | 'half-open' | 'recovering';
  rate: number;
  inFlightMax: number;
  revision: number;
  /** The newest one; null: not known. */
  change: Change | null;
  /** All since the last look, oldest first; at the first one those of late, which another may have told. */
  news: readonly Change[];
  /** When a person's hold ends by itself; null: there is none, or it does not. */
  holdEndsMs: number | null;
  heldBy: string;
  /** What ends are a person's bounds, not a hold of the values. */
  boundsEnd?: true;
  atFloorTicks: number;
  /** By name: is it lost, and why; null: nothing new was read, which says neither. */
  signals: Record<string, { lost: boolean | null; why: string }>;
  /** Of this tick; null: nothing was heard. */
  traffic: {
    offered: number;
    denied: number;
    /** Decisions without Redis, and those slower than 5 ms. */
    fallback: number;
    slow: number;
    /** Takes of newcomers, who share one bucket: as many subjects live as the policy allows. */
    overflow: number;
  } | null;
  /** The most subjects that may live; null: the policy says none. */
  subjectsMax: number | null;
}

export interface WatchMemory {
  /** By key of the alert. */
  conditions: Record<string, Condition>;
  usual: Usual;
  /** Of the last turn, to see a trip that follows a trip. */
  state: WatchFacts['state'] | null;
  /** End of the hold that was announced. */
  announcedMs: number;
}

export function startWatch(): WatchMemory {
  return { conditions: {}, usual: NOTHING_USUAL, state: null, announcedMs: 0 };
}

/** Goes on from what another daemon has told: those keys are firing. */
export function resumeWatch(keys: readonly string[]): WatchMemory {
  const firing = { firing: true, otherSinceMs: null };
  return { ...startWatch(), conditions: Object.fromEntries(keys.map((key) => [key, firing])) };
}

/** All that may be firing of a limiter with these signals. */
export function keysOf(limiter: string, signals: readonly string[]): string[] {
  const kinds = [
    'trip',
    'at_floor',
    'denied',
    'subjects_overflow',
    'fallback',
    'slow_decisions',
  ] satisfies AlertKind[];
  return [
    ...kinds.map((kind) => `${limiter}/${kind}`),
    ...signals.map((name) => `${limiter}/signal_lost/${name}`),
  ];
}

/** What this memory says is firing. */
export function firingOf({ conditions }: WatchMemory): string[] {
  return Object.keys(conditions).filter((key) => conditions[key]!.firing);
}

/** So many ticks at the least that the bounds allow are told. */
const AT_FLOOR_TICKS = 10;
/** Shares of the decisions above which a fallback, or slowness (its p99 is above 5 ms), is told. */
const SHARE = 0.01;
/** Fewer decisions in a tick prove no share. */
const LEAST_DECISIONS = 20;
/** Fewer of them without Redis in a tick may be one pause of one process: that is told once it goes on. */
const MANY_FALLBACKS = 10;
/** A hold's end is announced so long before. */
const ANNOUNCE_MS = 5 * 60_000;

const AT_ONCE: Patience = { afterMs: 0, overMs: 0 };
const STEADY: Patience = { afterMs: 0, overMs: 60_000 };
const GOES_ON: Patience = { afterMs: 3_000, overMs: 60_000 };
const LASTING: Patience = { afterMs: 30_000, overMs: 60_000 };
const LONG: Patience = { afterMs: 60_000, overMs: 120_000 };

export function watch(
  before: WatchMemory,
  facts: WatchFacts,
): { memory: WatchMemory; alerts: Alert[] } {
  const { limiter, nowMs, traffic } = facts;
  const alerts: Alert[] = [];
  const conditions: Record<string, Condition> = {};
  const isQuiet = Object.keys(before.conditions).length === 0;

  function tell(kind: AlertKind, key: string, state: Alert['state'], of: WordsFor): void {
    const severity = state === 'resolved' ? 'info' : severityOf(kind);
    const ofAll = OF_A_SERVER.has(kind);
    alerts.push({
      ...{ key, kind, severity, state, atMs: of.facts.nowMs },
      ...{ limiter: ofAll ? null : limiter, owner: ofAll ? null : facts.owner },
      ...words(kind, of),
    });
  }

  function look(kind: AlertKind, about: string, holds: boolean | null, patience: Patience): void {
    // As in nearly every turn of nearly every limiter: then not even keys are made.
    if (isQuiet && holds !== true) return;
    const key = about === '' ? `${limiter}/${kind}` : `${limiter}/${kind}/${about}`;
    const was = before.conditions[key] ?? QUIET;
    const { condition, turned } = turnCondition(was, holds, nowMs, patience);
    if (condition !== QUIET && (condition.firing || condition.otherSinceMs !== null)) {
      conditions[key] = condition;
    }
    if (turned !== null) {
      tell(kind, key, turned === 'fired' ? 'firing' : 'resolved', { facts, about });
    }
  }

  const again = before.state === 'half-open' || before.state === 'recovering';
  look('trip', '', facts.state !== 'closed', AT_ONCE);
  if (facts.state === 'open' && again && before.conditions[`${limiter}/trip`]?.firing) {
    tell('retrip', `${limiter}/trip`, 'firing', { facts, about: '' });
  }

  look('at_floor', '', facts.atFloorTicks > AT_FLOOR_TICKS, STEADY);
  for (const [name, { lost }] of Object.entries(facts.signals)) {
    look('signal_lost', name, lost, LASTING);
  }
  // Of a signal that the policy no longer names nobody can be told that it is back.
  const lostPrefix = `${limiter}/signal_lost/`;
  for (const [key, { firing }] of Object.entries(before.conditions)) {
    const name = key.slice(lostPrefix.length);
    const gone = firing && key.startsWith(lostPrefix) && !(name in facts.signals);
    if (gone) tell('signal_lost', key, 'resolved', { facts, about: name });
  }

  let { usual } = before;
  const enough = traffic !== null && traffic.offered >= LEAST_DECISIONS;
  const denied = enough ? traffic.denied / traffic.offered : null;
  // While the breaker is open nearly all is denied: that is told as the trip.
  const comparable = denied !== null && facts.state === 'closed';
  look('denied', '', comparable ? farAboveUsual(usual, denied) : null, LONG);
  if (comparable) usual = learnUsual(usual, denied);
  look('subjects_overflow', '', traffic === null ? null : traffic.overflow > 0, STEADY);
  const fallbacks = enough ? traffic.fallback : 0;
  const without = enough ? fallbacks > SHARE * traffic.offered : null;
  look('fallback', '', without, fallbacks < MANY_FALLBACKS ? GOES_ON : STEADY);
  look('slow_decisions', '', enough ? traffic.slow > SHARE * traffic.offered : null, LASTING);

  let { announcedMs } = before;
  const endsMs = facts.holdEndsMs;
  if (
    endsMs !== null &&
    endsMs > nowMs &&
    endsMs - nowMs <= ANNOUNCE_MS &&
    announcedMs !== endsMs
  ) {
    announcedMs = endsMs;
    const key = `${limiter}/hold_ending/${Math.round(endsMs / 1000)}`;
    tell('hold_ending', key, 'event', { facts, about: '' });
  }
  for (const change of facts.news) {
    const event = EVENTS[change.reason];
    if (event === undefined) continue;
    tell(event, eventKey(event, limiter, change), 'event', {
      facts: { ...facts, change, nowMs: change.atMs },
      about: '',
    });
  }
  const memory = { conditions, usual, state: facts.state, announcedMs };
  return { memory, alerts };
}

/** What befell a Redis server is seen by all limiters that it holds: the first tells it for all. */
const OF_A_SERVER: ReadonlySet<AlertKind> = new Set(['failover', 'writes_lost', 'params_restored']);
const MINUTE_MS = 60_000;

function eventKey(kind: AlertKind, limiter: string, change: Change): string {
  const { epoch, revision, server, atMs } = change;
  if (!OF_A_SERVER.has(kind)) return `${limiter}/${kind}/${epoch}/${revision}`;
  return `flyball/${kind}/${server ?? Math.floor(atMs / MINUTE_MS)}`;
}
