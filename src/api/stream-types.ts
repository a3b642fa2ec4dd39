/** What the stream tells, as types. Stage: api. */
import type { AuditRecord } from '../view/entry.js';
import type { SeriesPoint } from '../view/series.js';
import type { StatusView } from '../view/status.js';

/** `GET /stream` and `/stream?limiter=checkout` (rows of that one alone, each second). `text/event-stream`; data is JSON. */
export type StreamEvent =
  /** First, and whenever what was missed is not known any more: forget what you have. */
  | { event: 'snapshot'; data: SnapshotEvent }
  /** Rows that changed, and names that are gone. */
  | { event: 'limiters'; data: LimitersEvent }
  /** New entries, oldest first. */
  | { event: 'audit'; data: { entries: AuditRecord[] } }
  /** Each time Redis was looked at, changed or not: the age of what you show counts from here. */
  | { event: 'tick'; data: TickEvent };

export interface SnapshotEvent extends TickEvent {
  limiters: StatusView[];
}

export interface LimitersEvent {
  atMs: number;
  limiters: StatusView[];
  gone: string[];
  /** A point for the charts of each row that was read, as in `…/series`. */
  points: LimiterPoint[];
}

export type { SeriesPoint } from '../view/series.js';
export type { SeriesChange, SeriesSignal, SeriesWindow } from '../view/series-read.js';

export type LimiterPoint = SeriesPoint & { limiter: string };

export interface TickEvent {
  /** Redis ms when it last answered. */
  atMs: number;
  /** All limiters are looked at once in so many ms: 1,000 of them take some seconds. */
  everyMs: number;
  /** Null: Redis answers; else what it said, and rows are as old as `atMs`. */
  redisAway: string | null;
}
