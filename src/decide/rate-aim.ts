/** Where the rate-only form of law `adaptive` aims, by how much waits in the service, and how it comes back. Stage: decide. */
import { clamp } from './bounds.js';
import { type Episode, ownAim } from './futile.js';
import { numberIn } from './law.js';
import { expectedSlope, type Leisure, leisureOf } from './leisure.js';
import type { Overload } from './overload.js';
import type { LawMemory, Sample, TrafficEstimate } from './types.js';

/**
 * A quantile near the setpoint says either that requests wait, or that the service takes so long by itself. The mean W
 * against L, the mean at leisure, tells: with s the slope that they let expect (leisure.ts),
 *
 *   lift    0 … 1 as s goes from liftFrom to liftTo (W from 1.75 L to 1.4 L)
 *   aim     aim … aimMost of the setpoint by lift, and from `grave` … `mild` of it on it drains
 *   ease    1 … 0 as W goes from L to (1 + slower) L: how little waits
 *
 * Load may never fall far below what the service carries, so L is a guess: of the W that is measured at the share u of
 * the highest throughput known, up to busy · u² may be waiting. The lowest guess counts; it rises within an hour.
 */
export const AIM = {
  aim: 0.7,
  aimMost: 0.95,
  liftFrom: 0.4,
  liftTo: 0.6,
  /** All of the lift is for data of at most this age, none for those twice as old: the older, the larger the margin. */
  freshMs: 5_000,
  calm: 0.1,
  /** Share of `calm` that is left out where the aim has risen. */
  nearer: 0.5,
  /** Multiples of the setpoint: above `grave` it drains, below `mild` a rate that did not bind only comes down to the load. */
  grave: 1,
  mild: 1.5,
  busy: 0.25,
  down: 0.25,
  upMs: 3_600_000,
  slower: 0.4,
  /** curve(0), and the seconds to its plateau. */
  returnTo: 0.92,
  plateau: 20,
  beyondPlateau: 0.12,
  /** How much faster t runs for each unit (log) of room under the aim. */
  haste: 1,
};

/** `returnTo` … 1 up to the plateau, then steeper and steeper. */
export function curve(t: number): number {
  const u = (t - AIM.plateau) / AIM.plateau;
  return u < 0 ? 1 + (1 - AIM.returnTo) * u ** 3 : 1 + AIM.beyondPlateau * u ** 3;
}

export interface RateAim {
  slope: number;
  /** Overload index less the aim. */
  over: number;
  /** Overload in which it must drain. */
  grave: boolean;
  /** Room enough under the aim to raise. */
  room: boolean;
  /** By how much (log) it is below the lower aim: what hastens a return. */
  below: number;
}

export function rateAim(
  { z }: Overload,
  episode: Episode,
  leisure: Leisure,
  ageMs: number,
): RateAim {
  const slope = leisure.meanMs > 0 ? expectedSlope(leisure) : 0;
  const lift =
    clamp((slope - AIM.liftFrom) / (AIM.liftTo - AIM.liftFrom), 0, 1) *
    clamp(2 - ageMs / AIM.freshMs, 0, 1);
  const aim = AIM.aim + (AIM.aimMost - AIM.aim) * lift;
  const over = z - Math.log(ownAim(episode, aim, AIM.aimMost));
  return {
    slope,
    over,
    grave: z > Math.log(AIM.grave + (AIM.mild - AIM.grave) * lift),
    room: over < -AIM.calm * (1 - AIM.nearer * lift),
    below: clamp(Math.log(AIM.aim) - z - AIM.calm, 0, 1),
  };
}

/** W and L after this sample, taken at the share `load` of the highest throughput known. */
export function leisureAt(load: number, before: LawMemory, sample: Sample): Leisure {
  const knownMs = numberIn(before, 'leisureMs', 0);
  const { meanMs } = leisureOf(before, sample, true);
  if (!sample.traffic.fresh || !(meanMs > 0)) return { meanMs, leisureMs: knownMs };
  const guessMs = meanMs * (1 - AIM.busy * clamp(load, 0, 1) ** 2);
  if (!(knownMs > 0)) return { meanMs, leisureMs: guessMs };
  if (guessMs < knownMs) return { meanMs, leisureMs: knownMs + AIM.down * (guessMs - knownMs) };
  // A queue of a minute says no more of L than one of a second.
  const up = Math.min(guessMs, 2 * knownMs) - knownMs;
  return { meanMs, leisureMs: knownMs + clamp(sample.dtMs / AIM.upMs, 0, 1) * up };
}

/**
 * Share of a great stride: all where nothing waits, none where much does. On the way back (`leisure`) a stride that is
 * too long stands until the next sample, so it is the shorter the later that comes.
 */
export function stridesOf(
  leisure: Leisure | null,
  usualMs: number,
  traffic: TrafficEstimate,
): number {
  const { meanMs: newestMs, intervalMs, ageMs } = traffic;
  if (leisure === null) return easeOf(newestMs ?? usualMs, usualMs);
  // The newest W alone where it is lower: a queue that is gone shows at once.
  const meanMs = Math.min(leisure.meanMs, newestMs ?? leisure.meanMs);
  return easeOf(meanMs, leisure.leisureMs) / Math.max(1, (intervalMs + ageMs) / 1000);
}

function easeOf(meanMs: number, leisureMs: number): number {
  return leisureMs > 0 ? clamp(1 - (meanMs / leisureMs - 1) / AIM.slower, 0, 1) : 0;
}
