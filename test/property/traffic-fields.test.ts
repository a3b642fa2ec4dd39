import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { sumSeconds, trafficFields } from '../../src/view/traffic.js';

const name = fc.oneof(
  fc.constantFrom(FIELD.offered, FIELD.admitted, FIELD.flushes, FIELD.inFlight, 'ok', 'err', 'nn'),
  fc.constantFrom('offf', 'xoff', 'd', 'd:', 'pr:', 'dd:rate', 'prp:a'),
  fc.constantFrom(FIELD.denied('rate'), FIELD.wouldDeny('in_flight'), FIELD.denied('d:x')),
  fc.constantFrom(FIELD.process('a'), FIELD.reportingProcess('b'), FIELD.process('Ü')),
  fc.integer({ min: -50, max: 400 }).map(FIELD.latency),
  fc.integer({ min: -50, max: 400 }).map(FIELD.oldest),
);
const hash = fc.dictionary(name, fc.nat(1e6).map(String), { noNullPrototype: true });

test('what is taken of the lines sums to the same as the whole hash', () => {
  fc.assert(
    fc.property(hash, (whole) => {
      const lines = Buffer.from(Object.entries(whole).flat().join('\n'));
      const taken = trafficFields(lines);
      expect(sumSeconds([taken], 1)).toEqual(sumSeconds([whole], 1));
      expect(Object.keys(taken).filter((field) => /^(l|lf|w|o|e):/.test(field))).toEqual([]);
    }),
    { numRuns: 500 },
  );
  expect(trafficFields(Buffer.alloc(0))).toEqual({});
});
