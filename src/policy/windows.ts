/** Which window of a schedule holds at a moment: asked of the clock, so that a missed edge heals by itself. Pure. Stage: policy. */
import type { Span } from '../redis/windows.js';
import { DAY_MS, instantOf, localMs } from './local-time.js';

/** What a window says of its time; the rest of it is what holds then. */
export interface TimeWindow {
  on?: string | undefined;
  from: string;
  to: string;
  timezone?: string | undefined;
}

const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const MINUTE_MS = 60_000;

/** `19:50` → ms after midnight; `2026-11-11 19:50` → as if that were UTC, with `dated`; else null. */
export function parseMoment(text: string): { ms: number; dated: boolean } | null {
  const match = /^(?:(\d{4}-\d{2}-\d{2})[ T])?([01]\d|2[0-3]):([0-5]\d)$/.exec(text);
  if (match === null) return null;
  const [, date, hours, minutes] = match;
  const ms = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  if (date === undefined) return { ms, dated: false };
  const day = dayOf(date);
  return day === null ? null : { ms: day + ms, dated: true };
}

/** Does a local day belong? Days are UTC midnights of their date; null: the text names no days. */
export function parseDays(text: string): ((dayMs: number) => boolean) | null {
  const tests = text
    .toLowerCase()
    .split(',')
    .map((part) => partOf(part.trim()));
  if (tests.some((test) => test === null)) return null;
  return (dayMs) => tests.some((test) => test!(dayMs));
}

function partOf(part: string): ((dayMs: number) => boolean) | null {
  const range = /^([a-z]{3})(?:-([a-z]{3}))?$/.exec(part);
  if (range !== null) {
    const from = WEEKDAYS.indexOf(range[1]!);
    const to = WEEKDAYS.indexOf(range[2] ?? range[1]!);
    if (from < 0 || to < 0) return null;
    // fri-mon goes over the end of the week.
    return (dayMs) => {
      const day = new Date(dayMs).getUTCDay();
      return from <= to ? from <= day && day <= to : day >= from || day <= to;
    };
  }
  if (/^\d{2}-\d{2}$/.test(part)) {
    // A leap year: 02-29 is a day, if not of each year.
    if (dayOf(`2024-${part}`) === null) return null;
    return (dayMs) => new Date(dayMs).toISOString().slice(5, 10) === part;
  }
  const day = dayOf(part);
  return day === null ? null : (dayMs) => dayMs === day;
}

/** `2026-11-11` → its midnight as if in UTC; null for what is no date. */
function dayOf(date: string): number | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return null;
  const ms = Date.parse(`${date}T00:00:00Z`);
  return Number.isFinite(ms) && new Date(ms).toISOString().slice(0, 10) === date ? ms : null;
}

/**
 * From when until when the window holds at `nowMs`; null: it does not. A local time that a clock set forward skips is
 * the end of the gap; one that a clock set back repeats is the first of the two.
 */
export function windowAt(window: TimeWindow, nowMs: number): Span | null {
  const [from, to] = [parseMoment(window.from), parseMoment(window.to)];
  if (from === null || to === null) return null;
  const zone = window.timezone ?? 'UTC';
  if (from.dated) return spanAt(instantOf(zone, from.ms), instantOf(zone, to.ms), nowMs);
  const days = window.on === undefined ? () => true : parseDays(window.on);
  if (days === null) return null;
  const today = Math.floor(localMs(zone, nowMs) / DAY_MS) * DAY_MS;
  const lengthDays = to.ms <= from.ms ? DAY_MS : 0;
  // Newest first. Tomorrow too: where the clock was set back over midnight, its times may have begun.
  for (const day of [today + DAY_MS, today, today - DAY_MS]) {
    if (!days(day)) continue;
    const start = instantOf(zone, day + from.ms);
    const span = spanAt(start, instantOf(zone, day + lengthDays + to.ms), nowMs);
    if (span !== null) return span;
  }
  return null;
}

function spanAt(fromMs: number, untilMs: number, nowMs: number): Span | null {
  return fromMs <= nowMs && nowMs < untilMs ? { fromMs, untilMs } : null;
}
