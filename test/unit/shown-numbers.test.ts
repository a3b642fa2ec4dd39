/** Numbers that a person reads: none that somebody wrote past the services, and none as new that is old. */
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createIo } from '../../src/cli/output.js';
import { signalsText } from '../../src/cli/signals-text.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import type { SignalView } from '../../src/view/signals.js';
import { sumSeconds, trafficOfHash, trafficOfLines } from '../../src/view/traffic.js';

test.each(['NaN', '-5', '1e9', '1.5', '99999999999999999999', '0x10', ''])(
  'a count %j counts nothing',
  (lie) => {
    const denied = FIELD.denied('rate');
    const hash = {
      [FIELD.offered]: lie,
      [FIELD.admitted]: lie,
      [FIELD.flushes]: '1',
      [denied]: lie,
    };
    const lines = [lie, lie, '1', lie, 'a', 'a', denied, lie];
    for (const second of [trafficOfHash(hash), trafficOfLines(lines)]) {
      const told = sumSeconds([second, { ...second, offered: 60, denied: [denied, '30'] }], 2);
      expect(told).toMatchObject({ offeredPerSecond: 30, admittedPerSecond: 0 });
      expect(told.deniedPerSecond).toEqual({ rate: 15 });
    }
  },
);

test('without traffic the number of the last who were answered is old, and has no age', () => {
  const stream = () => new PassThrough();
  const io = createIo({ stdin: stream(), stdout: stream(), stderr: stream(), env: {} });
  const view = (part: Partial<SignalView>): SignalView => ({
    ...{ signal: 'p95', source: 'telemetry', stat: 'latency', unit: 'ms', value: 51, ageMs: 0 },
    ...{ count: 442, setpoint: 250, side: 'below', tripsAbove: null, verdict: 'missing' },
    ...{ follows: 'holds', reason: 'no_traffic', detail: null },
    ...part,
  });
  const row = (part: Partial<SignalView>) => {
    const told = { limiter: 'a', from: 'here', owner: null, ageMs: 0, held: null } as const;
    return signalsText(io, { ...told, signals: [view(part)] }).split('\n')[2];
  };
  expect(row({})).toMatch(/^p95 +51 ms \(old\) +below 250 ms +442 +missing +holds +no_traffic$/);
  expect(row({ reason: 'not_finite', ageMs: 17_000 })).toMatch(/51 ms +below 250 ms +17 s/);
  expect(row({ reason: null, verdict: 'fresh' })).toMatch(/51 ms +below 250 ms +0 ms/);
});
