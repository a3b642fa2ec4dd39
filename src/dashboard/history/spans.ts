/** Stretches of time that people ask for by a word, and times as a field of a form holds them. Pure. Stage: dashboard. */
import type { Times } from '../routing.js';

const HOUR_MS = 3_600_000;

export interface NamedTimes {
  title: string;
  times: Times;
}

/** By the reader's clock; a night is what a day's work leaves of it. */
export function namedTimes(nowMs: number): NamedTimes[] {
  const now = new Date(nowMs);
  const at = (days: number, hour: number) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour).getTime();
  const minuteMs = Math.floor(nowMs / 60_000) * 60_000;
  return [
    { title: 'All', times: { sinceMs: null, untilMs: null } },
    { title: 'Last hour', times: { sinceMs: minuteMs - HOUR_MS, untilMs: null } },
    { title: 'Today', times: { sinceMs: at(0, 0), untilMs: null } },
    { title: 'Last night', times: { sinceMs: at(-1, 18), untilMs: at(0, 9) } },
    { title: 'Yesterday', times: { sinceMs: at(-1, 0), untilMs: at(0, 0) } },
  ];
}

const two = (n: number) => String(n).padStart(2, '0');

/** `2026-05-04T02:00` of the reader's clock. */
export function fieldText(ms: number | null): string {
  if (ms === null) return '';
  const d = new Date(ms);
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day}T${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** null: the field is empty. */
export function fieldMs(text: string): number | null {
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
