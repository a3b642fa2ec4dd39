/** A roll-up of any telemetry reads back as it was written: finite, counts exact, measures to four digits. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rollUp, UNWATCHED } from '../../src/daemon/roll-up.js';
import { historyText, readHistoryRow } from '../../src/redis/history-rows.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';

const count = fc.integer({ min: 0, max: 1_000_000 });
const bin = fc.integer({ min: -350, max: 700 });
const junk = fc.constantFrom('x:1', 'l:abc', '__proto__', 'd:', 'd:__proto__', 'l:99999', 'c:a:b');
const field = fc.oneof(
  bin.map(FIELD.latency),
  bin.map(FIELD.dbWait),
  fc.constantFrom('rate', 'in_flight', 'subject').map(FIELD.denied),
  fc
    .constantFrom('a', 'b', 'c')
    .chain((id) => fc.constantFrom(FIELD.process(id), FIELD.reportingProcess(id))),
  fc.constantFrom(
    FIELD.flushes,
    FIELD.offered,
    FIELD.admitted,
    FIELD.ok,
    FIELD.failed,
    FIELD.timedOut,
  ),
  fc.constantFrom(
    FIELD.latencySumUs,
    FIELD.dbWaitSumUs,
    FIELD.inFlight,
    FIELD.poolWaiting,
    FIELD.poolFlushes,
  ),
  junk,
);
const second = fc
  .array(
    fc.tuple(
      field,
      fc.oneof(
        { weight: 20, arbitrary: count.map(String) },
        { weight: 1, arbitrary: fc.constantFrom('', 'NaN', '-1', '1e999') },
      ),
    ),
    { maxLength: 25 },
  )
  .map((pairs) =>
    Buffer.from(
      Object.entries(Object.fromEntries(pairs) as Record<string, string>)
        .flat()
        .join('\n'),
    ),
  );

test('what is written is read back, whatever the seconds held', () => {
  fc.assert(
    fc.property(fc.array(second, { maxLength: 60 }), (seconds) => {
      const row = rollUp(29_665_000, seconds, UNWATCHED);
      if (row === null) return;
      const read = readHistoryRow(String(row.minute), historyText(row));
      expect(read).not.toBeNull();
      for (const name of ['offered', 'admitted', 'ok', 'failed', 'cancelled'] as const) {
        expect(read![name]).toBe(row[name]);
      }
      for (const [name, value] of Object.entries(read!)) {
        if (typeof value !== 'number') continue;
        expect([name, Number.isFinite(value), value >= 0]).toEqual([name, true, true]);
        const written = row[name as 'meanMs'];
        if (written) expect(Math.abs(value / written - 1)).toBeLessThan(1e-3);
      }
      expect(read!.points.length).toBe(row.points.length);
      // Once more is the same: nothing is lost by reading.
      expect(historyText(read!)).toBe(historyText(row));
    }),
  );
});
