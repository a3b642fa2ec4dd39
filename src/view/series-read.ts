/** A limiter's charts: minutes that are rolled up, the newest points of who watched, and the changes among them. Stage: api. */
import { readEntries, type StoredEntry } from '../actuate/audit.js';
import type { Actor } from '../actuate/entry.js';
import type { Policy } from '../policy/schema.js';
import { readHistory } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { LimiterState } from '../redis/params.js';
import { storedMs } from '../redis/stream-id.js';
import type { Session } from './limiters.js';
import { pointOf, pointOfMinute, type SeriesPoint, withMinutes } from './series.js';
import type { SignalView } from './signals.js';
import { signalViews } from './signals.js';
import { type StatusView, statusView } from './status.js';
import { readStatusFacts } from './status-facts.js';

const SERIES_WINDOWS = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000 } as const;
export type SeriesWindow = keyof typeof SERIES_WINDOWS;

/** Markers of a chart; more would be a wall. */
const MOST_CHANGES = 500;

type Column = (number | null)[];

/** Columns of equal length. */
export interface SeriesView {
  fromMs: number;
  atMs: number;
  timeMs: number[];
  state: (LimiterState | null)[];
  rate: Column;
  capacity: Column;
  inFlightMax: Column;
  inFlight: Column;
  offered: Column;
  admitted: Column;
  denied: Column;
  signals: SeriesSignal[];
  bounds: StatusView['bounds'];
  changes: SeriesChange[];
}

export interface SeriesSignal
  extends Pick<SignalView, 'signal' | 'unit' | 'setpoint' | 'side' | 'tripsAbove'> {
  values: Column;
}

/** A marker on a chart; its entry tells more. */
export interface SeriesChange {
  id: string;
  /** When Redis stored it. */
  atMs: number;
  epoch: number;
  revision: number;
  reason: string;
  actor: Actor;
  sentence: string;
}

/** What was seen lately. */
export interface RecentPoints {
  since(limiter: string, fromMs: number): SeriesPoint[];
}

export async function readSeries(
  session: Session,
  address: LimiterAddress,
  window: SeriesWindow,
  recent: RecentPoints,
): Promise<SeriesView> {
  const facts = await readStatusFacts(session, address);
  const view = statusView(facts);
  const atMs = Math.floor(facts.nowMs);
  const fromMs = atMs - SERIES_WINDOWS[window];
  const [rows, page] = await Promise.all([
    readHistory(session.redis, limiterKeys(address), fromMs, atMs),
    readEntries(session.redis, address, { kind: 'change', sinceMs: fromMs, limit: MOST_CHANGES }),
  ]);
  // Of the long windows a point a minute is enough; of the short one each that was seen.
  const now = pointOf(facts, view);
  const near = window === '15m' ? recent.since(address.name, fromMs) : [];
  const seen = [...near.filter(({ timeMs }) => timeMs < now.timeMs), now];
  const minutes = rows.map((row) => pointOfMinute(row, facts.policy));
  const points = withMinutes(
    seen,
    minutes.filter(({ timeMs }) => timeMs >= fromMs),
  );
  const { timeMs, state, rate, capacity, inFlightMax } = columnsOf(points);
  const { inFlight, offered, admitted, denied } = columnsOf(points);
  return {
    ...{ fromMs, atMs, timeMs, state, rate, capacity, inFlightMax },
    ...{ inFlight, offered, admitted, denied },
    signals: signalsOf(facts.policy, points),
    bounds: view.bounds,
    changes: page.entries.map(changeOf).reverse(),
  };
}

function columnsOf(points: readonly SeriesPoint[]) {
  const column = <K extends keyof SeriesPoint>(name: K) => points.map((point) => point[name]);
  return {
    ...{ timeMs: column('timeMs'), state: column('state'), rate: column('rate') },
    ...{ capacity: column('capacity'), inFlightMax: column('inFlightMax') },
    ...{ inFlight: column('inFlight'), offered: column('offered') },
    ...{ admitted: column('admitted'), denied: column('denied') },
  };
}

function signalsOf(policy: Policy | null, points: readonly SeriesPoint[]): SeriesSignal[] {
  if (policy === null) return [];
  const nothing = { signals: {} } as Parameters<typeof signalViews>[1];
  return signalViews(policy, nothing, {}).map(({ signal, unit, setpoint, side, tripsAbove }) => ({
    ...{ signal, unit, setpoint, side, tripsAbove },
    values: points.map((point) => point.signals[signal] ?? null),
  }));
}

function changeOf({ id, epoch, revision, body }: StoredEntry): SeriesChange {
  const { reason, actor, sentence } = body;
  return { id, atMs: storedMs({ id }), epoch, revision, reason, actor, sentence };
}
