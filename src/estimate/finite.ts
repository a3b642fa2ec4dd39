/** The one gate before all arithmetic: a reading that is not finite, ran backwards or repeats is turned away. Stage: estimate. */
import type { MissingReason, Reading, TelemetryReading } from '../sense/readings.js';

/** No count or time of a service comes near this; what is larger is a fault, and its products would overflow. */
const LARGEST = 1e12;

function sound(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value) <= LARGEST;
}

const COUNTS = [
  ...(['offered', 'admitted', 'ok', 'failed', 'timedOut', 'cancelled'] as const),
  ...(['processes', 'reporting'] as const),
] as const;

/** Why a telemetry reading cannot be used, or null when it can. */
export function telemetryFault(reading: TelemetryReading): MissingReason | null {
  const { fromMs, toMs, denied, codes } = reading;
  if (!Number.isFinite(fromMs) || !Number.isFinite(toMs)) return 'not_finite';
  let isSound = true;
  let least = 0;
  const look = (count: number) => {
    isSound &&= sound(count);
    least = Math.min(least, count);
  };
  for (const name of COUNTS) look(reading[name]);
  for (const reason in denied) look(denied[reason]!);
  for (const code in codes) look(codes[code]!);
  if (!isSound) return 'not_finite';
  if (least < 0) return 'reset';
  return toMs <= fromMs ? 'no_data' : null;
}

/** Ahead of the tick by more than this is a clock that goes wrong; a reading of so long ago tells nothing of now. */
const AHEAD_MS = 5_000;
const OLD_MS = 300_000;

/** Why a reading that speaks of that moment cannot be used at this tick, or null. */
export function momentFault(atMs: number, nowMs: number): MissingReason | null {
  if (!Number.isFinite(atMs)) return 'not_finite';
  if (atMs - nowMs > AHEAD_MS) return 'clock_skew';
  return nowMs - atMs > OLD_MS ? 'stale' : null;
}

/** A value as a usable number, or why not. Every signal here is a time, a count or a ratio: never negative. */
export function valueFault(reading: Reading): MissingReason | null {
  if (reading.kind === 'missing') return reading.reason;
  if (!Number.isFinite(reading.atMs) || !sound(reading.value) || !sound(reading.count)) {
    return 'not_finite';
  }
  if (reading.value < 0 || reading.count < 0) return 'reset';
  return null;
}

/** A sum or gauge that may be left out: null unless it is a sound number from 0 up. */
export function soundOrNull(value: number): number | null {
  return sound(value) && value >= 0 ? value : null;
}

const DIGITS = 6;
/** 10ⁿ as doubles hold it exactly. */
const POWERS = Array.from({ length: 23 }, (_each, n) => Number(`1e${n}`));

/**
 * Six significant digits: enough for any decision, and a sample that stays small in the audit log. A whole number over
 * an exact power of ten is the double that its digits say; what lies far from 1 goes by its text.
 */
export function round6(value: number): number {
  const size = Math.abs(value);
  if (!(size >= 1e-9 && size < 1e15)) return value === 0 ? 0 : Number(value.toPrecision(DIGITS));
  let exponent = Math.floor(Math.log10(size));
  if (size >= 10 ** (exponent + 1)) exponent += 1;
  const shift = DIGITS - 1 - exponent;
  if (shift < 0) return Math.round(value / POWERS[-shift]!) * POWERS[-shift]!;
  return Math.round(value * POWERS[shift]!) / POWERS[shift]!;
}
