/** The columns behind the charts: a live point added, old ones let go; markers, gaps, bands and the table they stand on. Pure. Stage: dashboard. */
import type { LimiterPoint, SeriesAnswer, SeriesChange, SeriesWindow } from '../../api/types.js';
import type { LimiterState } from '../../redis/params.js';
import { lastedText, minutesText } from '../data/times.js';

export const WINDOW_MS: Record<SeriesWindow, number> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
};

type Columns = Pick<
  SeriesAnswer,
  | 'timeMs'
  | 'state'
  | 'rate'
  | 'capacity'
  | 'inFlightMax'
  | 'inFlight'
  | 'offered'
  | 'admitted'
  | 'denied'
>;
const COLUMNS: readonly Exclude<keyof Columns, 'timeMs'>[] = [
  'state',
  'rate',
  'capacity',
  'inFlightMax',
  'inFlight',
  'offered',
  'admitted',
  'denied',
];

/** The series with one more point, and without what has left the window. An old or repeated point changes nothing. */
export function withPoint(series: SeriesAnswer, point: LimiterPoint): SeriesAnswer {
  const last = series.timeMs.at(-1) ?? 0;
  if (point.timeMs <= last) return series;
  const fromMs = point.timeMs - WINDOW_MS[series.window];
  const found = series.timeMs.findIndex((time) => time >= fromMs);
  const drop = found < 0 ? series.timeMs.length : found;
  const moved = <T>(list: readonly T[], next: T): T[] => [...list.slice(drop), next];
  const next: SeriesAnswer = {
    ...series,
    fromMs,
    atMs: point.timeMs,
    timeMs: moved(series.timeMs, point.timeMs),
    signals: series.signals.map((signal) => ({
      ...signal,
      values: moved(signal.values, point.signals[signal.signal] ?? null),
    })),
    changes: series.changes.filter((change) => change.atMs >= fromMs),
  };
  for (const name of COLUMNS) {
    Object.assign(next, { [name]: moved(series[name] as unknown[], point[name]) });
  }
  return next;
}

/** New entries as markers, each once. */
export function withChanges(series: SeriesAnswer, changes: readonly SeriesChange[]): SeriesAnswer {
  const known = new Set(series.changes.map(({ id }) => id));
  const fresh = changes.filter(({ id }) => !known.has(id));
  return fresh.length === 0 ? series : { ...series, changes: [...series.changes, ...fresh] };
}

export interface Span {
  state: LimiterState;
  fromMs: number;
  toMs: number;
}

/** Stretches of one state; what is not known is a gap. Each lasts until the next point. */
export function statesOf({ timeMs, state }: Pick<SeriesAnswer, 'timeMs' | 'state'>): Span[] {
  const spans: Span[] = [];
  timeMs.forEach((time, i) => {
    const now = state[i];
    if (now == null) return;
    const until = timeMs[i + 1] ?? time;
    const last = spans.at(-1);
    if (last?.state === now && last.toMs === time) last.toMs = until;
    else spans.push({ state: now, fromMs: time, toMs: until });
  });
  return spans;
}

export interface Gap {
  fromMs: number;
  toMs: number;
}

/** A minute stands in its middle, and is there up to two minutes after it; one alone may have had no request. */
const GAP_MS = 180_000;
const HALF_MINUTE_MS = 30_000;

/** Where nothing was recorded, from the first time that is shown on. */
export function gapsOf(timeMs: readonly number[], fromMs: number): Gap[] {
  const gaps: Gap[] = [];
  timeMs.forEach((toMs, i) => {
    const last = timeMs[i - 1];
    if (toMs - (last ?? fromMs) < GAP_MS) return;
    gaps.push({
      fromMs: last === undefined ? fromMs : last + HALF_MINUTE_MS,
      toMs: toMs - HALF_MINUTE_MS,
    });
  });
  return gaps;
}

/** With a point of nothing where a gap begins: no line, no state and no row of the table reaches across. */
export function withGaps(series: SeriesAnswer, gaps: readonly Gap[]): SeriesAnswer {
  const inside = gaps.filter(({ fromMs }) => fromMs > (series.timeMs[0] ?? Infinity));
  if (inside.length === 0) return series;
  const places = inside.map(({ fromMs }) => series.timeMs.findIndex((time) => time > fromMs));
  const wider = <T>(list: readonly T[], between: (i: number) => T): T[] =>
    list.flatMap((value, i) => {
      const gap = places.indexOf(i);
      return gap < 0 ? [value] : [between(gap), value];
    });
  const next: SeriesAnswer = {
    ...series,
    timeMs: wider(series.timeMs, (gap) => inside[gap]!.fromMs),
    signals: series.signals.map((signal) => ({
      ...signal,
      values: wider(signal.values, () => null),
    })),
  };
  for (const name of COLUMNS) {
    Object.assign(next, { [name]: wider<unknown>(series[name], () => null) });
  }
  return next;
}

/** Gaps that are named one by one. */
const NAMED_GAPS = 3;

/** When nothing was recorded, in a sentence; the longest first are named. null: there is no gap. */
export function gapsText(gaps: readonly Gap[], toMs: number): string | null {
  if (gaps.length === 0) return null;
  const longest = [...gaps].sort((a, b) => b.toMs - b.fromMs - (a.toMs - a.fromMs));
  const named = longest.slice(0, NAMED_GAPS).sort((a, b) => a.fromMs - b.fromMs);
  const times = named.map((gap) => minutesText(gap.fromMs, gap.toMs, toMs));
  const rest = longest.slice(NAMED_GAPS);
  const restMs = rest.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
  const more =
    rest.length === 0 ? '' : `, and ${rest.length} shorter times (${lastedText(restMs)})`;
  return `Nothing was recorded ${times.join(', ')}${more}: no requests came, or no daemon ran.`;
}

export interface Marker {
  /** 0 … 1 of the window. */
  at: number;
  /** Newest last; more than one lie too near to each other to be told apart. */
  changes: SeriesChange[];
}

/** Changes as markers that do not lie upon each other. */
export function markersOf(
  changes: readonly SeriesChange[],
  fromMs: number,
  toMs: number,
  apart: number,
): Marker[] {
  const markers: Marker[] = [];
  const inside = changes.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  for (const change of [...inside].sort((a, b) => a.atMs - b.atMs)) {
    const at = (change.atMs - fromMs) / Math.max(1, toMs - fromMs);
    const last = markers.at(-1);
    if (last !== undefined && at - last.at < apart) last.changes.push(change);
    else markers.push({ at, changes: [change] });
  }
  return markers;
}

/** A chart of so little time says more than an empty one. */
const LEAST_SHOWN_MS = 120_000;

/** Where the charts begin: with the first thing that is known of the window, and at least two minutes back. */
export function shownFrom(
  series: Pick<SeriesAnswer, 'fromMs' | 'atMs' | 'timeMs' | 'changes'>,
): number {
  const { fromMs, atMs, timeMs, changes } = series;
  const first = Math.min(timeMs[0] ?? atMs, changes[0]?.atMs ?? atMs);
  return Math.max(fromMs, Math.min(first, atMs - LEAST_SHOWN_MS));
}

/** At most `most` rows, newest first, evenly through the list; the newest is always there. */
export function tableRows(length: number, most: number): number[] {
  if (length === 0) return [];
  const step = Math.max(1, Math.ceil(length / most));
  const rows: number[] = [];
  for (let i = length - 1; i >= 0; i -= step) rows.push(i);
  return rows;
}

/** The top of an axis: above all that is drawn, without the bounds, which may lie far beyond. */
export function ceilingOf(columns: readonly (readonly (number | null)[])[]): number {
  let most = 0;
  for (const column of columns)
    for (const value of column) if (value !== null && value > most) most = value;
  return most === 0 ? 1 : most * 1.12;
}
