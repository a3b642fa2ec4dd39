/** How far another clock lies from ours, bounded by the round trip of the question; what a second and five minutes mean. Stage: sense. */
import type { Clock } from '../clock.js';

/** From here on people are told: times in logs and entries no longer compare. */
export const SKEW_WARN_MS = 1_000;
/** From here on nothing is decided: which clock is wrong cannot be known. */
export const SKEW_HOLD_MS = 300_000;

/** One look at another clock, with our wall time when it was asked and when its answer was there. */
export interface ClockLook {
  theirsMs: number;
  sentMs: number;
  receivedMs: number;
  /** A clock told in whole seconds lies up to this much further. */
  resolutionMs?: number;
}

/** Theirs − ours: the middle of what is possible, and how far from it the truth may lie. */
export interface Skew {
  skewMs: number;
  boundMs: number;
}

export type SkewVerdict = 'ok' | 'warn' | 'hold';

/**
 * Each look says: theirs − ours lies between (theirs − received) and (theirs − sent). Looks that agree narrow it;
 * one that does not (a clock was set) begins anew. Null of none.
 */
export function skewOf(looks: readonly ClockLook[]): Skew | null {
  let low = Number.NaN;
  let high = Number.NaN;
  for (const { theirsMs, sentMs, receivedMs, resolutionMs = 0 } of looks) {
    const from = theirsMs - receivedMs;
    const to = theirsMs + resolutionMs - sentMs;
    if (!Number.isFinite(from) || !Number.isFinite(to) || to < from) continue;
    const agrees = from <= high && to >= low;
    low = agrees ? Math.max(low, from) : from;
    high = agrees ? Math.min(high, to) : to;
  }
  return Number.isNaN(low) ? null : { skewMs: (low + high) / 2, boundMs: (high - low) / 2 };
}

/** By what is sure: a slow answer proves no skew. */
export function skewVerdict({ skewMs, boundMs }: Skew): SkewVerdict {
  const leastMs = Math.abs(skewMs) - boundMs;
  if (leastMs > SKEW_HOLD_MS) return 'hold';
  return leastMs > SKEW_WARN_MS ? 'warn' : 'ok';
}

/** Asks a clock a few times and keeps what all answers allow. Rejects when it does not answer. */
export async function measureSkew(
  clock: Clock,
  askMs: () => Promise<number>,
  times = 3,
): Promise<Skew> {
  const looks: ClockLook[] = [];
  for (let i = 0; i < times; i++) {
    const sentMs = clock.nowMs();
    const startMs = clock.monotonicMs();
    const theirsMs = await askMs();
    // Not read from the wall a second time: it may be set in between.
    looks.push({ theirsMs, sentMs, receivedMs: sentMs + clock.monotonicMs() - startMs });
  }
  const skew = skewOf(looks);
  if (skew === null) throw new Error('the clock told no time');
  return skew;
}

export const CLOCK_MEND = 'Run NTP (chrony, systemd-timesyncd) on both machines.';

/** `6 min ahead of this daemon's`. */
export function apart(skewMs: number, ours: string): string {
  const s = Math.abs(skewMs) / 1000;
  const length =
    s < 1
      ? `${Math.round(s * 1000)} ms`
      : s < 120
        ? `${Number(s.toPrecision(3))} s`
        : s < 7200
          ? `${Math.round(s / 60)} min`
          : `${Math.round(s / 3600)} h`;
  return `${length} ${skewMs < 0 ? 'behind' : 'ahead of'} ${ours}`;
}
