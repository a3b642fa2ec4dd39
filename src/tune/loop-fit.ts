/** Dead time and gain of the loop, how far they can be trusted, and what of the law follows from them. Stage: tune. */
import { clamp } from '../decide/bounds.js';
import type { LoopMemory } from '../decide/types.js';
import { LAGS, LOOP } from './loop.js';

export interface LoopFit {
  /** ms from a change of the limit until the signal shows it, age of the samples included; 0: unknown. */
  deadMs: number;
  /** d ln signal ÷ d ln limit; 0: unknown. */
  gain: number;
  /** R²: the share of the signal's variation that changes of the limit explain. */
  fit: number;
  /** Standard deviation of ln signal that they do not explain. */
  noise: number;
  /** Changes behind it, the older counting less. */
  changes: number;
  /** 0: defaults rule; 1: what follows from the fit; between: part of the way. */
  trust: number;
}

/** What makes a fit a good one: nothing at the first number, all at the second. */
export const GOOD = { changes: [6, 12], fit: [0.15, 0.4], deviations: [4, 8] } as const;

/** Lags whose R² is this share of the best are as good. */
const SAME = 0.98;

/** A gain out of this range is no answer to the limit. */
const GAIN = { least: 0.1, most: 10 };

export function fitLoop(memory: LoopMemory | undefined): LoopFit {
  const changes = memory?.changes ?? 0;
  const none: LoopFit = { deadMs: 0, gain: 0, fit: 0, noise: 0, changes, trust: 0 };
  // So few are never followed: what they would say is not worth its time.
  if (memory === undefined || changes < GOOD.changes[0]) return none;
  if (!(memory.yy > 0) || !(memory.weight > 2)) return none;
  const fits: number[] = [];
  let most = 0;
  for (let lag = 0; lag < LAGS; lag++) {
    const fit = explained(memory.uy[lag]!, memory.uu[lag]!, memory.yy);
    fits.push(fit);
    if (fit > most) most = fit;
  }
  if (!(most > 0)) return none;
  // Samples far apart cannot tell short lags from each other: the longest of those that are as good.
  let best = LAGS - 1;
  while (fits[best]! < SAME * most) best--;
  const fit = fits[best]!;
  const gain = memory.uy[best]! / memory.uu[best]!;
  const noise = Math.sqrt(Math.max(0, memory.yy * (1 - fit)) / memory.weight);
  const deviations = Math.sqrt(((memory.weight - 2) * fit) / Math.max(1e-6, 1 - fit));
  const inRange = gain >= GAIN.least && gain <= GAIN.most;
  const trust = Math.min(
    part(changes, GOOD.changes),
    part(fit, GOOD.fit),
    part(deviations, GOOD.deviations),
  );
  return { deadMs: lagMs(fits, best), gain, fit, noise, changes, trust: inRange ? trust : 0 };
}

/** A raise of the limit raises the signal: the other way about nothing is explained. */
function explained(uy: number, uu: number, yy: number): number {
  return uy > 0 && uu > 1e-6 ? clamp((uy * uy) / (uu * yy), 0, 1) : 0;
}

function part(value: number, [from, to]: readonly [number, number]): number {
  return clamp((value - from) / (to - from), 0, 1);
}

/** The middle of the best lag, moved toward the better of its neighbours (the top of a parabola through the three). */
function lagMs(fits: readonly number[], best: number): number {
  const from = LOOP.edges[best]!;
  const to = LOOP.edges[best + 1]!;
  const [before = 0, at, after = 0] = [fits[best - 1], fits[best]!, fits[best + 1]];
  const bend = 2 * at - before - after;
  const inner = best > 0 && best < LAGS - 1 && bend > 0;
  const off = inner ? clamp((after - before) / (2 * bend), -0.5, 0.5) : 0;
  return Math.round(Math.sqrt(from * to) * (to / from) ** off);
}

/** What the laws read: factors on their own constants. All 1 and no trust: exactly their own. */
export interface LoopTuning {
  trust: number;
  deadMs: number;
  /** Depth of a cut, and pace of a raise. */
  cut: number;
  raise: number;
  /** Room (log) kept under the setpoint. */
  headroom: number;
}

export const DEFAULT_LOOP: LoopTuning = { trust: 0, deadMs: 0, cut: 1, raise: 1, headroom: 1 };

/** The loop that the law's own constants were made for. */
const USUAL = { deadMs: 3_000, gain: 0.8, noise: 0.2 };

/** Whatever the fit says, a constant moves no further than by these factors. */
const SAFE = { least: 0.5, most: 2 };
const SAFE_ROOM = { least: 0.75, most: 1.5 };

/**
 * Small steps where the signal answers strongly, slow ones where it answers late, room where it is noisy. A rate has no
 * gain of its own (above what the service carries a queue grows for as long as it stands): there only the wait follows.
 */
export function tuningOf({ trust, deadMs, gain, noise }: LoopFit, rateOnly = 0): LoopTuning {
  if (!(trust > 0)) return DEFAULT_LOOP;
  if (rateOnly === 1) return { ...DEFAULT_LOOP, trust, deadMs };
  const within = (factor: number, range = SAFE) => clamp(factor, range.least, range.most) ** trust;
  return {
    trust,
    deadMs,
    cut: within(USUAL.gain / gain),
    raise: within((USUAL.gain * USUAL.deadMs) / (gain * deadMs)),
    headroom: within(noise / USUAL.noise, SAFE_ROOM),
  };
}

/** Time to wait after a cut: what the law reckons, moved toward what was seen; never less than samples are old. */
export function holdOffMs({ trust, deadMs }: LoopTuning, reckonedMs: number, ageMs = 0): number {
  if (!(trust > 0) || !(reckonedMs > 0)) return reckonedMs;
  const seenMs = Math.max(deadMs, ageMs);
  return reckonedMs * clamp(seenMs / reckonedMs, SAFE.least, SAFE.most) ** trust;
}

/** For the audit entry, the metrics and `status`: among a law's own terms. */
export function addLoopTerms(
  terms: Record<string, number>,
  fit: LoopFit,
  tuning: LoopTuning,
): void {
  terms.loopDeadMs = fit.deadMs;
  terms.loopGain = fit.gain;
  terms.loopFit = fit.fit;
  terms.loopNoise = fit.noise;
  terms.loopChanges = fit.changes;
  terms.loopTrust = fit.trust;
  terms.loopCut = tuning.cut;
  terms.loopRaise = tuning.raise;
  terms.loopHeadroom = tuning.headroom;
}
