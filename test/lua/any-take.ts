/** Takes of every kind and numbers of every size that properties of the scripts are tried with. */
import fc from 'fast-check';
import type { TakeRequest } from '../../src/redis/calls.js';

export const anyTake: fc.Arbitrary<TakeRequest> = fc.record({
  subject: fc.constantFrom(null, 'a', 'b', 'c{}', 'É'),
  cost: fc.constantFrom(0, 1, 1, 1, 2, 0.5, 0.000001, 30, Number.NaN, -1),
  priority: fc.constantFrom('default' as const, 'critical' as const, 'sheddable' as const),
});

export const anyNumbers = fc.record({
  rate: fc.constantFrom(1, 10, 33.3),
  capacity: fc.constantFrom(1, 10, 50),
  subjectRate: fc.constantFrom(-1, 0.5, 7),
  subjectCapacity: fc.constantFrom(2, 20),
  reserveDefault: fc.constantFrom(0, 0.3),
  reserveSheddable: fc.constantFrom(0, 0.7),
});
