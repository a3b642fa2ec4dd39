/** Text that came from outside, made safe and short for a terminal; numbers and times as people read them. Stage: cli. */
import { closest as nearest, third } from '../closest.js';
import { inertLine, UNSAFE } from '../unsafe.js';

function escapeChar(char: string): string {
  const code = char.codePointAt(0)!;
  if (char === '\n') return '\\n';
  if (char === '\r') return '\\r';
  if (char === '\t') return '\\t';
  return code <= 0xff
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Data from Redis (names, reasons, actors) with control characters shown, never obeyed. */
export function clean(text: string): string {
  return text.replace(UNSAFE, escapeChar);
}

/**
 * The last gate before the terminal: our own line breaks and colours pass, any other control character
 * is shown. `clean` at the source already did this; here a forgotten call is caught.
 */
export function guardTerminal(text: string): string {
  return text
    .split(COLOUR)
    .map((part, i) =>
      i % 2 === 1 ? part : part.replace(UNSAFE, (c) => (c === '\n' ? c : escapeChar(c))),
    )
    .join('');
}
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the one place that names them.
const COLOUR = /(\x1b\[(?:[0-9]{1,3})m)/;

/** JSON that a terminal cannot be hijacked with either: the same characters as `\uXXXX` escapes. */
export function safeJson(value: unknown): string {
  return inertLine(JSON.stringify(value, null, 2));
}

/** The same on one line, for a command that tells many things one by one. */
export function safeJsonLine(value: unknown): string {
  return inertLine(JSON.stringify(value));
}

/** 3 significant digits, never exponent form, no trailing zeros: `104`, `7.25`, `0.5`. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'no limit' : String(value);
  if (Number.isInteger(value)) return String(value);
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 4;
  return String(Number(value.toFixed(digits)));
}

/** `850 ms`, `12 s`, `3 min 5 s`, `1 h 2 min`, `2 d 3 h`. */
export function span(ms: number): string {
  const abs = Math.max(0, Math.round(ms));
  if (abs < 1000) return `${abs} ms`;
  const s = Math.round(abs / 1000);
  if (s < 60) return `${s} s`;
  const parts: [number, string][] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const out: string[] = [];
  let rest = s;
  for (const [size, unit] of parts) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) out.push(`${n} ${unit}`);
    if (out.length === 2) break;
    // `1 d 5 s` would be noise: after the first part only the next unit counts.
    if (out.length === 1 && n === 0) break;
  }
  return out.join(' ');
}

/** Local time with seconds: `2026-05-04 13:02:11`; ISO in JSON. */
export function localTime(ms: number): string {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '?';
  const two = (n: number) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function clockTime(ms: number): string {
  return localTime(ms).slice(11);
}

/** The one of `names` that a mistyped word most resembles, or undefined. */
export function closest(word: string, names: readonly string[]): string | undefined {
  const most = third(word.length, 2);
  return nearest(word, names, () => most)?.name;
}
