/** Who forwarded a request, read from the nearest proxy outwards: `X-Forwarded-For` and `Forwarded`. Stage: enforce. */
import { bareAddress } from './client-address.js';

export type ProxyHeader = 'x-forwarded-for' | 'forwarded';

/** What stands at the right end of a list: its address, null when it is none, and where the rest ends (-1: no rest). */
export interface Hop {
  address: string | null;
  rest: number;
}

/** From the right, since only what our own proxies appended is known to be true. */
export function lastHop(header: ProxyHeader, text: string, end: number): Hop {
  const comma = header === 'forwarded' ? commaOutsideQuotes(text, end) : lastComma(text, end);
  const element = text.slice(comma + 1, end).trim();
  const address = header === 'forwarded' ? forOf(element) : bareAddress(element);
  return { address, rest: comma };
}

/** `lastIndexOf` from -1 would find a comma at 0. */
function lastComma(text: string, end: number): number {
  return end === 0 ? -1 : text.lastIndexOf(',', end - 1);
}

/** Whatever a client wrote into its own part, quotes there do not reach into the part to the right of it. */
function commaOutsideQuotes(text: string, end: number): number {
  let quoted = false;
  for (let i = end - 1; i >= 0; i--) {
    const char = text[i];
    if (char === '"' && !(quoted && isEscaped(text, i))) quoted = !quoted;
    else if (char === ',' && !quoted) return i;
  }
  return -1;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

const PAIR = /^\s*([!#$%&'*+\-.^_`|~\w]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+\-.^_`|~\w]+))\s*(;|$)/;

/** The address of `for=` in one element; null for `unknown`, a hidden name, two of them or a malformed element. */
function forOf(element: string): string | null {
  let rest = element;
  let found: string | null = null;
  while (rest !== '') {
    const pair = PAIR.exec(rest);
    if (!pair) return null;
    const [whole, name = '', quoted, token = ''] = pair;
    rest = rest.slice(whole.length);
    if (name.toLowerCase() !== 'for') continue;
    if (found !== null) return null;
    found = quoted === undefined ? token : quoted.replace(/\\(.)/g, '$1');
  }
  return found === null ? null : bareAddress(found);
}
