/** When a schedule was last due, from its text, a time zone and now: asked of state, so that no missed edge is lost. Stage: tune. */
import { DAY_MS, instantOf, localMs } from '../policy/local-time.js';

export const NAMED_SCHEDULES: Readonly<Record<string, string>> = {
  weekly: '0 4 * * 1',
  daily: '0 4 * * *',
};

/** What a policy says that wants `flyball tune` alone. */
export const NEVER = 'never';

/** When a policy's tuning runs by itself: weekly, unless it says otherwise; null: never. */
export function scheduleOf(tune: { schedule?: string | undefined } | undefined): string | null {
  const schedule = tune === undefined ? NEVER : (tune.schedule ?? 'weekly');
  return schedule === NEVER ? null : schedule;
}

/** The values that each field allows. */
interface Cron {
  minutes: number[];
  hours: number[];
  days: number[];
  months: number[];
  weekdays: number[];
  /** `*` in the day of the month, and of the week: then the other decides alone; else either does. */
  anyDay: boolean;
  anyWeekday: boolean;
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
/** No zone moves its clock by more at once, but once in its history. */
const CLOCK_MOVE_MS = 3 * 3_600_000;
/** 29 February on a given weekday comes at the latest after so many years. */
const MOST_DAYS = 40 * 366;

/** `weekly`, `daily`, or five fields of cron; null when it is none of them, or names a day that never is. */
export function parseSchedule(text: string): Cron | null {
  const fields = (NAMED_SCHEDULES[text] ?? text).trim().toLowerCase().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minutes, hours, days, months, weekdays] = [
    valuesOf(fields[0]!, 0, 59),
    valuesOf(fields[1]!, 0, 23),
    valuesOf(fields[2]!, 1, 31),
    valuesOf(fields[3]!, 1, 12, MONTHS, 1),
    valuesOf(fields[4]!, 0, 7, WEEKDAYS, 0),
  ];
  if (!minutes || !hours || !days || !months || !weekdays) return null;
  const [anyDay, anyWeekday] = [fields[2]!.startsWith('*'), fields[4]!.startsWith('*')];
  const never = anyWeekday && months.every((month) => days.every((day) => day > longest(month)));
  if (never) return null;
  const folded = [...new Set(weekdays.map((day) => day % 7))];
  return { minutes, hours, days, months, weekdays: folded, anyDay, anyWeekday };
}

/**
 * The newest moment at or before `nowMs` at which the schedule was due. A local time that a clock set forward skips is
 * due when the gap ends; one that a clock set back repeats is due the first time only.
 */
export function lastDue(text: string, zone: string, nowMs: number): number | null {
  const cron = parseSchedule(text);
  if (cron === null) return null;
  const minutes = [...cron.minutes].sort((a, b) => b - a);
  const hours = [...cron.hours].sort((a, b) => b - a);
  const wallNowMs = localMs(zone, nowMs);
  const today = Math.floor(wallNowMs / DAY_MS);
  // A day ahead: where the clock was set back over midnight, tomorrow's times may be behind us already.
  for (let day = today + 1; day > today - MOST_DAYS; day--) {
    if (!onDay(cron, new Date(day * DAY_MS))) continue;
    let newest: number | null = null;
    for (const hour of hours) {
      for (const minute of minutes) {
        const wallMs = day * DAY_MS + (hour * 60 + minute) * 60_000;
        if (wallMs > wallNowMs + CLOCK_MOVE_MS) continue;
        const atMs = instantOf(zone, wallMs);
        if (atMs <= nowMs && (newest === null || atMs > newest)) newest = atMs;
        // What is earlier by the clock on the wall is not later in time, but around a change of the clock.
        if (newest !== null && atMs < newest - CLOCK_MOVE_MS) return newest;
      }
    }
    if (newest !== null) return newest;
  }
  return null;
}

function onDay(cron: Cron, date: Date): boolean {
  if (!cron.months.includes(date.getUTCMonth() + 1)) return false;
  const day = cron.days.includes(date.getUTCDate());
  const weekday = cron.weekdays.includes(date.getUTCDay());
  return cron.anyDay || cron.anyWeekday ? day && weekday : day || weekday;
}

/** Lists of values, ranges, steps and names, as cron writes them; null when it is none. */
function valuesOf(
  text: string,
  min: number,
  max: number,
  names: readonly string[] = [],
  firstName = 0,
): number[] | null {
  const one = (word: string): number => {
    const named = names.indexOf(word);
    return named >= 0 ? named + firstName : /^\d{1,2}$/.test(word) ? Number(word) : Number.NaN;
  };
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const match = /^(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:\/(\d{1,2}))?$/.exec(part);
    if (match === null || (match[1] === '*' && match[2] !== undefined)) return null;
    const step = match[3] === undefined ? 1 : Number(match[3]);
    const from = match[1] === '*' ? min : one(match[1]!);
    const to =
      match[1] === '*' ? max : match[2] !== undefined ? one(match[2]) : match[3] ? max : from;
    if (!(from >= min && to <= max && from <= to && step >= 1)) return null;
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return [...values];
}

function longest(month: number): number {
  return month === 2 ? 29 : [4, 6, 9, 11].includes(month) ? 30 : 31;
}
