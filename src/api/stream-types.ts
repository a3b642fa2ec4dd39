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
  /** Redis is looked at so often: after two looks without a word what you show is the past. */
  lookMs: number;
  /** Of all limiters each is looked at once in so many ms, sooner when it has changed; at each look those of `POST /stream/shown`. */
  everyMs: number;
  /** Null: Redis answers; else what it said, and rows are as old as `atMs`. */
  redisAway: string | null;
}

/** `POST /stream/shown`: rows that a follower of all has in sight; they are looked at each time. */
export interface ShownRequest {
  /** At most 100. */
  limiters: string[];
}

export interface ShownAnswer {
  schema: 1;
  /** How many of them are known here. */
  limiters: number;
  /** For so long; then they have their turn as the others, unless you have said it again. */
  forMs: number;
}
