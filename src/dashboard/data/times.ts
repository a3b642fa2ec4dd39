/** Times as the reader's clock shows them, with UTC beside; spans in words. Pure. Stage: dashboard. */
import { span } from '../../view/text.js';

const two = (n: number) => String(n).padStart(2, '0');

/** `13:02:11` of today, else with the date. */
export function localTime(ms: number, nowMs: number): string {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '?';
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return sameDay(d, new Date(nowMs)) ? clock : `${dayText(d)} ${clock}`;
}

/** `02:22–02:23`, to the minute; with the date where it is not today. */
export function minutesText(fromMs: number, toMs: number, nowMs: number): string {
  const from = new Date(fromMs);
  const to = new Date(toMs);
  const clock = (d: Date) => `${two(d.getHours())}:${two(d.getMinutes())}`;
  const day = sameDay(from, new Date(nowMs)) ? '' : `${dayText(from)} `;
  const until = sameDay(from, to) ? clock(to) : `${dayText(to)} ${clock(to)}`;
  return `${day}${clock(from)}${clock(from) === until ? '' : `–${until}`}`;
}

/** `40 s`, `1 min`, `2 h 5 min`: nobody needs the seconds of minutes. Empty: less than a second. */
export function lastedText(ms: number): string {
  if (ms < 1000) return '';
  return span(ms < 60_000 ? ms : Math.floor(ms / 60_000) * 60_000);
}

/** `2026-05-04 13:02:11 UTC` */
export function utcTime(ms: number): string {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '?';
  return `${d.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function isoTime(ms: number): string {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? '' : d.toISOString();
}

/** `3 min ago`; of what lies ahead `in 12 s`: one unit is enough. */
export function ago(ms: number, nowMs: number): string {
  const past = nowMs - ms;
  const words = span(Math.abs(past)).split(' ').slice(0, 2).join(' ');
  if (Math.abs(past) < 1000) return 'now';
  return past > 0 ? `${words} ago` : `in ${words}`;
}

/** `mm:ss` under an hour, `h:mm:ss` above: a countdown of steady width. */
export function countdown(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const rest = `${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}`;
  return s >= 3600 ? `${Math.floor(s / 3600)}:${rest}` : rest;
}

function dayText(d: Date): string {
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

function sameDay(a: Date, b: Date): boolean {
  return a.toDateString() === b.toDateString();
}
