import fc from 'fast-check';
import { Gauge, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { bucketQuantile } from '../../src/sense/scrape-numbers.js';
import { PageFault, parsePage } from '../../src/sense/scrape-parse.js';

const wanted = new Set(['x', 'x_total']);

test('any text is a page or a fault that names a line, and soon', () => {
  const pieces = fc.constantFrom(
    'x',
    '{',
    '}',
    '"',
    '\\',
    'a="b"',
    ',',
    ' ',
    '1',
    '#',
    '\n',
    'e',
    '=',
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(pieces).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, fc.boolean(), (page, openMetrics) => {
      try {
        parsePage(page, openMetrics, wanted);
      } catch (error) {
        expect(error).toBeInstanceOf(PageFault);
      }
    }),
  );
  // Nothing here is looked at twice for each character: a long line stays quick, or this test would not end.
  for (const long of [
    'x{'.repeat(50_000),
    `x{a="${'\\'.repeat(100_000)}`,
    `x ${' '.repeat(100_000)}`,
  ]) {
    expect(() => parsePage(long, false, wanted)).toThrow(PageFault);
  }
});

test('what prom-client writes is read back, whatever the labels hold', async () => {
  const series = fc.uniqueArray(
    fc.record({ label: fc.string(), value: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    { selector: ({ label }) => label, minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(series, async (all) => {
      const registry = new Registry();
      const gauge = new Gauge({ name: 'x', help: 'x', labelNames: ['l'], registers: [registry] });
      for (const { label, value } of all) gauge.set({ l: label }, value);
      const page = parsePage(await registry.metrics(), false, wanted);
      const read = page.samples.get('x')!.map(({ labels, value }) => ({ label: labels.l, value }));
      expect(read).toEqual(all.map(({ label, value }) => ({ label, value: value + 0 })));
    }),
    { numRuns: 50 },
  );
});

test('C64: quantiles of buckets: none, one, without bounds, beyond, torn', () => {
  const of = (...gains: [string, number][]) =>
    gains.map(([le, gain]) => ({ sample: { labels: { le }, value: 0, timestampMs: null }, gain }));
  expect(bucketQuantile([], 0.5)).toBeNull();
  expect(bucketQuantile(of(['0.1', 0], ['+Inf', 0]), 0.5)).toBeNull();
  expect(bucketQuantile(of(['+Inf', 5]), 0.5)).toBeNull();
  expect(bucketQuantile(of(['wide', 5]), 0.5)).toBeNull();
  expect(bucketQuantile(of(['0.1', 10], ['+Inf', 10]), 0.5)).toEqual({
    value: 0.05,
    beyond: false,
  });
  expect(bucketQuantile(of(['0.1', 1], ['+Inf', 10]), 0.9)).toEqual({ value: 0.1, beyond: true });
  // A page is not written in one moment: the lower bucket is ahead of the higher.
  expect(bucketQuantile(of(['0.1', 12], ['0.2', 10], ['+Inf', 12]), 0.99)?.value).toBeLessThan(
    0.11,
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.double({ min: 0.001, max: 100, noNaN: true }), fc.nat(1000))),
      fc.double({ min: 0.001, max: 0.999, noNaN: true }),
      (buckets, q) => {
        const bounds = [...buckets].sort((a, b) => a[0] - b[0]);
        let sum = 0;
        const gains = bounds.map(([le, n]): [string, number] => {
          sum += n;
          return [String(le), sum];
        });
        const found = bucketQuantile(of(...gains, ['+Inf', sum]), q);
        if (found === null) return;
        expect(found.value).toBeGreaterThanOrEqual(0);
        expect(found.value).toBeLessThanOrEqual(bounds.at(-1)![0]);
      },
    ),
  );
});
