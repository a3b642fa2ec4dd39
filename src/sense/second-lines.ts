/** What a telemetry second gained since it was last read, from its bytes alone: a tick of a thousand limiters reads many. Pure. Stage: sense. */

/** Fields and counts in turn, a line each, as Redis keeps them. As bytes: characters of a text cost ten times as much to walk. */
export type SecondLines = Buffer;

export interface Gains {
  /** How many fields grew; the next three are theirs up to here. */
  size: number;
  /** Where the name of each begins and ends. */
  from: number[];
  to: number[];
  by: number[];
  /** A field whose value is no count. */
  broken: string | undefined;
}

const NEWLINE = 10;
const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const MOST_DIGITS = 15;
const NOTHING = Buffer.alloc(0);

/** One is enough: it is read before the next is made. */
const gains: Gains = { size: 0, from: [], to: [], by: [], broken: undefined };

/**
 * Counts only grow; if one shrank or is gone, the second was lost (a flush of Redis, an eviction) and began anew, so
 * all it holds now is new. The answer is overwritten by the next call.
 */
export function gainsOf(before: SecondLines | undefined, now: SecondLines): Gains {
  if (!compare(before ?? NOTHING, now)) compare(NOTHING, now);
  return gains;
}

/** False: it began anew. One walk over both texts, for they are read by the thousand. */
function compare(before: SecondLines, now: SecondLines): boolean {
  const { from, to, by } = gains;
  const { length } = now;
  let size = 0;
  let broken: string | undefined;
  let known: Map<string, number> | null = null;
  let met = 0;
  let old = 0;
  for (let at = 0; at < length; ) {
    // Redis mostly keeps the order, and adds what is new at the end.
    let same = known === null && old < before.length;
    let nameEnd = at;
    for (; nameEnd < length; nameEnd++) {
      const char = now[nameEnd];
      if (same && before[old + nameEnd - at] !== char) same = false;
      if (char === NEWLINE) break;
    }
    const countEnd = endOfCount(now, nameEnd + 1);
    const count = counted;
    let earlier = 0;
    if (same && nameEnd < length) {
      old = endOfCount(before, old + nameEnd - at + 1) + 1;
      earlier = counted;
    } else if (old < before.length) {
      known ??= countsOf(before);
      const found = known.get(nameIn(now, at, nameEnd));
      if (found !== undefined) {
        earlier = found;
        met += 1;
      }
    }
    if (count < earlier) return false;
    if (Number.isNaN(count)) broken ??= nameIn(now, at, nameEnd);
    else if (count > earlier) {
      from[size] = at;
      to[size] = nameEnd;
      by[size] = count - earlier;
      size += 1;
    }
    at = countEnd + 1;
  }
  gains.size = size;
  gains.broken = broken;
  return known === null ? old >= before.length : met === remaining(known, before, old);
}

/** In another order each of what was there must have been met, but for what had been met in order. */
function remaining(known: Map<string, number>, before: SecondLines, old: number): number {
  let passed = 0;
  for (let at = 0; at < old; passed++) at = endOf(before, endOf(before, at) + 1) + 1;
  return known.size - passed;
}

function countsOf(lines: SecondLines): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at < lines.length; ) {
    const nameEnd = endOf(lines, at);
    const countEnd = endOfCount(lines, nameEnd + 1);
    counts.set(nameIn(lines, at, nameEnd), counted);
    at = countEnd + 1;
  }
  return counts;
}

function endOf(lines: SecondLines, from: number): number {
  const at = lines.indexOf(NEWLINE, from);
  return at === -1 ? Math.max(from, lines.length) : at;
}

/** The count that `endOfCount` has passed: NaN when it was no whole number from 0 up. */
let counted = 0;

function endOfCount(lines: SecondLines, from: number): number {
  const { length } = lines;
  let count = 0;
  let at = from;
  for (; at < length; at++) {
    const byte = lines[at]!;
    if (byte === NEWLINE) break;
    count = byte >= ZERO && byte <= NINE ? count * 10 + byte - ZERO : Number.NaN;
  }
  counted = at > from && at - from <= MOST_DIGITS ? count : Number.NaN;
  return at;
}

/** A field's name as text. */
export function nameIn(lines: SecondLines, from: number, to: number): string {
  return lines.toString('utf8', from, to);
}

/** The number of a bin behind `l:`, `w:` …; NaN when it is none. */
export function binIn(lines: SecondLines, from: number, to: number): number {
  const negative = lines[from] === MINUS;
  const first = negative ? from + 1 : from;
  if (first >= to || to - first > MOST_DIGITS) return Number.NaN;
  let bin = 0;
  for (let at = first; at < to; at++) {
    const byte = lines[at]!;
    if (byte < ZERO || byte > NINE) return Number.NaN;
    bin = bin * 10 + byte - ZERO;
  }
  return negative ? -bin : bin;
}
