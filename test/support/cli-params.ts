/** Params of a limiter called checkout, as tests of the verbs and the CLI want them. */
import type { ParamChange, Params } from '../../src/redis/params.js';
import { BARE } from './bare-params.js';

export const NOW_MS = 1_700_000_000_000;

/** What a writer sets at creation: mode auto, 100/s, capacity 200, cap 24, bounds 20 … 400 and 2 … 64. */
export const CREATED = {
  ...BARE,
  rate: 100,
  capacity: 200,
  inFlightMax: 24,
  policyRate: 100,
  minRate: 20,
  maxRate: 400,
  minCapacity: 200,
  maxCapacity: 200,
  minInFlight: 2,
  maxInFlight: 64,
  safeRate: 100,
  safeInFlight: 24,
  policyHash: 'a'.repeat(64),
} as const satisfies ParamChange;

export function params(change: Partial<Params> = {}): Params {
  return {
    ...CREATED,
    v: 1,
    epoch: 1,
    revision: 9,
    accrued: 0,
    changedAt: (NOW_MS - 10_000) * 1000,
    subjectAccrued: 0,
    floor: 0,
    subjectFloor: 0,
    validUntil: NOW_MS + 5000,
    fence: 0,
    ...change,
  };
}
