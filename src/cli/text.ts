/** Text for a terminal that obeys none of what came from outside; times as people read them. Stage: cli. */
import { closest as nearest, third } from '../closest.js';
import { inertLine, UNSAFE } from '../unsafe.js';
import { escapeChar } from '../view/text.js';

export { clean, number, span } from '../view/text.js';

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
