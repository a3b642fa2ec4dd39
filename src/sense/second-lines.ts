/** What a telemetry second gained since it was last read, from its text alone: a tick of a thousand limiters reads many. Pure. Stage: sense. */

/** Fields and counts in turn, a line each, as Redis keeps them. */
export type SecondText = string;

export interface Gains {
  /** How many fields grew; the next three are theirs up to here. */
  size: number;
  /** Where the name of each begins and ends in the text. */
  from: number[];
  to: number[];
  by: number[];
  /** A field whose value is no count. */
  broken: string | undefined;
}

const NEWLINE = 10;
const NOTHING = '';

/** One is enough: it is read before the next is made. */
const gains: Gains = { size: 0, from: [], to: [], by: [], broken: undefined };

/**
 * Counts only grow; if one shrank or is gone, the second was lost (a flush of Redis, an eviction) and began anew, so
 * all it holds now is new. The answer is overwritten by the next call.
 */
export function gainsOf(before: SecondText | undefined, now: SecondText): Gains {
  if (!compare(before ?? NOTHING, now)) compare(NOTHING, now);
  return gains;
}

/** False: it began anew. */
function compare(before: SecondText, now: SecondText): boolean {
  gains.size = 0;
  gains.broken = undefined;
  let known: Map<string, number> | null = null;
  let met = 0;
  let old = 0;
  for (let at = 0; at < now.length; ) {
    const nameEnd = endOf(now, at);
    const countEnd = endOf(now, nameEnd + 1);
    const count = countIn(now, nameEnd + 1, countEnd);
    let earlier = 0;
    if (old < before.length && known === null && sameName(before, old, now, at, nameEnd)) {
      // Redis mostly keeps the order, and adds what is new at the end.
      const oldCount = old + nameEnd - at + 1;
      const oldEnd = endOf(before, oldCount);
      earlier = countIn(before, oldCount, oldEnd);
      old = oldEnd + 1;
    } else if (old < before.length) {
      known ??= countsOf(before);
      const found = known.get(now.slice(at, nameEnd));
      if (found !== undefined) {
        earlier = found;
        met += 1;
      }
    }
    if (count < earlier) return false;
    if (Number.isNaN(count)) gains.broken ??= now.slice(at, nameEnd);
    else if (count > earlier) {
      gains.from[gains.size] = at;
      gains.to[gains.size] = nameEnd;
      gains.by[gains.size] = count - earlier;
      gains.size += 1;
    }
    at = countEnd + 1;
  }
  return known === null ? old >= before.length : met === remaining(known, before, old);
}

/** In another order each of what was there must have been met, but for what had been met in order. */
function remaining(known: Map<string, number>, before: SecondText, old: number): number {
  let passed = 0;
  for (let at = 0; at < old; passed++) at = endOf(before, endOf(before, at) + 1) + 1;
  return known.size - passed;
}

function countsOf(text: SecondText): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at < text.length; ) {
    const nameEnd = endOf(text, at);
    const countEnd = endOf(text, nameEnd + 1);
    counts.set(text.slice(at, nameEnd), countIn(text, nameEnd + 1, countEnd));
    at = countEnd + 1;
  }
  return counts;
}

function endOf(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) !== NEWLINE) at += 1;
  return at;
}

function sameName(before: string, old: number, now: string, at: number, end: number): boolean {
  const length = end - at;
  for (let i = 0; i < length; i++) {
    if (before.charCodeAt(old + i) !== now.charCodeAt(at + i)) return false;
  }
  return before.charCodeAt(old + length) === NEWLINE;
}

/** NaN when it is no whole number from 0 up. */
function countIn(text: string, from: number, to: number): number {
  if (to <= from || to - from > 15) return Number.NaN;
  let count = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    count = count * 10 + digit;
  }
  return count;
}

/** The number of a bin behind `l:`, `w:` …; NaN when it is none. */
export function binIn(text: string, from: number, to: number): number {
  const negative = text.charCodeAt(from) === 45;
  const bin = countIn(text, negative ? from + 1 : from, to);
  return negative ? -bin : bin;
}
