/** The leaves of a policy: numbers, durations, ratios, each with an error that says what to write. Stage: policy. */
import { z } from 'zod';

const UNIT_MS = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export type DurationText = `${number}${keyof typeof UNIT_MS}`;
export type RatioText = `${number}%`;

/** `'250ms'`, `'5s'`, `'1m'`, `'2h'`, `'7d'` → milliseconds; undefined when it is none. */
export function durationMs(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(us|ms|s|m|h|d)$/.exec(text.trim());
  return match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : undefined;
}

/** `'1%'` → 0.01; undefined when it is none. */
export function ratioOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text.trim());
  return match ? Number(match[1]) / 100 : undefined;
}

/** A value as an error shows it, short. */
export function show(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'function') return 'a function';
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** `is missing` or `is "x", not …`, and what to write: it follows the name of the field. */
export function refuse(value: unknown, allowed: string): string {
  return value === undefined
    ? `is missing. Give ${allowed}.`
    : `is ${show(value)}, not ${allowed}.`;
}

export interface NumberRange {
  /** Least value that is allowed. */
  min?: number;
  /** The value must lie above this. */
  above?: number;
  max?: number;
  below?: number;
  whole?: boolean;
}

/** A number in a range. Text that means a number is answered with the number to write. */
export function number(what: string, range: NumberRange) {
  const limits = [
    range.above !== undefined ? `above ${range.above}` : '',
    range.min !== undefined ? `at least ${range.min}` : '',
    range.below !== undefined ? `below ${range.below}` : '',
    range.max !== undefined ? `at most ${range.max}` : '',
  ].filter(Boolean);
  const allowed = `${range.whole ? 'a whole number' : 'a number'} (${what}), ${limits.join(' and ')}`;
  return z.custom<number>((value) => typeof value === 'number' && fits(value, range), {
    error: (issue) => {
      const { input } = issue;
      const meant = typeof input === 'string' ? /^\s*(\d+(?:\.\d+)?(?:e\d+)?)/i.exec(input) : null;
      const mend =
        meant && fits(Number(meant[1]), range) ? ` Write ${Number(meant[1])}, no quotes.` : '';
      return refuse(input, allowed) + mend;
    },
  });
}

function fits(value: number, range: NumberRange): boolean {
  return (
    Number.isFinite(value) &&
    value >= (range.min ?? Number.NEGATIVE_INFINITY) &&
    value > (range.above ?? Number.NEGATIVE_INFINITY) &&
    value < (range.below ?? Number.POSITIVE_INFINITY) &&
    value <= (range.max ?? Number.POSITIVE_INFINITY) &&
    (!range.whole || Number.isSafeInteger(value))
  );
}

interface DurationRange {
  /** Least milliseconds. Default 0. */
  min?: number;
  /** Most milliseconds. Default 365 days. */
  max?: number;
}

/** A time: `250` (ms) or `'250ms'`, `'5s'`, `'1m'`, `'2h'`, `'7d'` → milliseconds. */
export function time(range: DurationRange = {}) {
  const { min = 0, max = 365 * UNIT_MS.d } = range;
  const limits =
    range.min === undefined && range.max === undefined ? '' : `, from ${min} ms to ${max} ms`;
  const allowed = `a duration (a number of milliseconds, or '250ms', '5s', '1m', '2h')${limits}`;
  return leaf<DurationText>(durationMs, (ms) => ms >= min && ms <= max, allowed);
}

/** A share: `0.01` or `'1%'` → 0…1. */
export const ratio = leaf<RatioText>(ratioOf, (r) => r >= 0 && r <= 1, "a ratio (0 … 1, or '1%')");

/** A number, or text in one unit that becomes that number. */
function leaf<Text extends string>(
  read: (text: string) => number | undefined,
  within: (value: number) => boolean,
  allowed: string,
) {
  const resolve = (value: unknown) =>
    typeof value === 'number' ? value : typeof value === 'string' ? read(value) : undefined;
  return z
    .custom<number | Text>(
      (value) => {
        const number = resolve(value);
        return number !== undefined && Number.isFinite(number) && within(number);
      },
      { error: (issue) => refuse(issue.input, allowed) },
    )
    .transform((value) => resolve(value) as number);
}

/**
 * A level of an objective or a breaker: which unit it must be in depends on its signal, so text becomes
 * its number here, and `checks.ts` compares the text's unit with the signal's kind.
 */
export const level = leaf<DurationText | RatioText>(
  (text) => durationMs(text) ?? ratioOf(text),
  (value) => value >= 0,
  "a level (a number, '250ms' for a time, '1%' for a ratio)",
);
