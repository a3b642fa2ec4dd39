/** Text that came from outside made inert; numbers and lengths of time as people read them. Pure. Stage: cli, api. */
import { UNSAFE } from '../unsafe.js';

/** A control character as people can read it: `\n`, `\x1b`, `\u202e`. */
export function escapeChar(char: string): string {
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
