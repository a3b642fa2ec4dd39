/** What a law decided to the digit, where rounding or the dead band kept it from being in force. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { clamp } from './bounds.js';
import type { LimiterNumbers } from './breaker-types.js';
import { numberIn } from './law.js';
import type { LawMemory, Sample } from './types.js';

/** Of an in-flight cap less than one is always pending; of a rate no more than what storing it rounds off. */
const CAP_ROOM = 1.01;
const RATE_ROOM = 0.006;

/**
 * Small steps add up until they pass the dead band: without this a law whose steps are smaller would never move. No
 * more than that is kept, so that nothing winds up at a bound or under a guard on the pace; under a hold, and where
 * someone else has changed what is in force, nothing is.
 */
export function exactIn(
  policy: Policy,
  memory: LawMemory,
  sample: Sample,
  start: LimiterNumbers,
): LimiterNumbers {
  if (sample.inForce.held !== 'none') return { ...start };
  const band = 1.01 * policy.guards.deadBand;
  const rateRoom = Math.max(band, RATE_ROOM) * start.rate;
  const exactRate = numberIn(memory, 'rate', start.rate);
  const stood = numberIn(memory, 'ofRate', start.rate) === start.rate;
  const rate = stood ? clamp(exactRate, start.rate - rateRoom, start.rate + rateRoom) : start.rate;

  const cap = start.inFlightMax;
  const exactCap = numberIn(memory, 'cap', cap);
  const sameCap = numberIn(memory, 'ofCap', cap) === cap;
  const capRoom = sameCap ? Math.max(Math.ceil(band * cap) + 0.01, CAP_ROOM) : CAP_ROOM;
  const follows = sameCap || Math.abs(exactCap - cap) < 1;
  return { rate, inFlightMax: follows ? clamp(exactCap, cap - capRoom, cap + capRoom) : cap };
}

/** For the next tick. */
export function keepExact(exact: LimiterNumbers, sample: Sample, start: LimiterNumbers): LawMemory {
  const { rate, inFlightMax } = sample.inForce.held === 'none' ? exact : start;
  return { rate, ofRate: start.rate, cap: inFlightMax, ofCap: start.inFlightMax };
}

/** What nothing moves keeps what is pending of a cut; a raise that is no longer wanted is dropped, but for rounding. */
export function unmoved(exact: LimiterNumbers, start: LimiterNumbers): LimiterNumbers {
  return {
    rate: Math.min(exact.rate, start.rate),
    inFlightMax: Math.min(exact.inFlightMax, start.inFlightMax + 0.499),
  };
}
