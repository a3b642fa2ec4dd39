/** A scenario's arrivals and conditions drawn beforehand: alike for all who are compared. Stage: simulate. */
import { streams } from './random.js';
import type { Conditions, Load } from './scenario.js';

/** Load and conditions are looked at this often. */
export const SLOT_MS = 100;

export interface Traffic {
  /** When first attempts arrive, in order; the last is Infinity. */
  arrivals: Float64Array;
  /** Conditions of each slot, and of the time after. */
  slots: Conditions[];
}

/** Poisson arrivals; the rate is looked up anew in each slot, which changes nothing as they have no memory. */
export function drawTraffic(load: Load, durationMs: number, seed: number): Traffic {
  const random = streams(seed, ['arrivals'])[0]!;
  const slots: Conditions[] = [];
  let arrivals = new Float64Array(1024);
  let count = 0;
  for (let startMs = 0; startMs < durationMs; startMs += SLOT_MS) {
    const now = load.at(startMs);
    slots.push(now);
    const endMs = Math.min(durationMs, startMs + SLOT_MS);
    for (let t = startMs; now.arrivalsPerSecond > 0; ) {
      t -= (Math.log(1 - random()) / now.arrivalsPerSecond) * 1000;
      if (t >= endMs) break;
      if (count + 1 === arrivals.length) {
        const wider = new Float64Array(2 * arrivals.length);
        wider.set(arrivals);
        arrivals = wider;
      }
      arrivals[count++] = t;
    }
  }
  arrivals[count] = Number.POSITIVE_INFINITY;
  if (slots.length === 0) slots.push(load.at(0));
  return { arrivals: arrivals.slice(0, count + 1), slots };
}
