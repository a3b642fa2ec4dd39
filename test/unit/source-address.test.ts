/** The address of a database out of the environment: of another kind, or of none, it is told, not looked for. */
import { expect, test } from 'vitest';
import { mendOf } from '../../src/cli/live-mends.js';
import { systemClock } from '../../src/clock.js';
import { mysql, postgres } from '../../src/policy/author.js';
import { policySchema } from '../../src/policy/schema.js';
import type { Missing } from '../../src/sense/readings.js';
import { createSource, type SourcedSignal } from '../../src/sense/sources.js';
import { keptLog } from '../support/kept-log.js';

const { log } = keptLog();
const SIGNALS = {
  postgres: postgres.waiting({ url: { env: 'ADDRESS' } }),
  mysql: mysql.threadsRunning({ url: { env: 'ADDRESS' } }),
};

test.each([
  ['postgres', 'mysql://u:hush@127.0.0.1:1/db'],
  ['postgres', 'https://u:hush@127.0.0.1:1'],
  ['postgres', 'not an address: hush'],
  ['postgres', 'db.internal'],
  ['mysql', 'postgres://u:hush@127.0.0.1:1/db'],
  ['mysql', 'redis://:hush@127.0.0.1:1'],
  ['mysql', 'hush'],
] as const)('%s at %j', async (kind, address) => {
  const { signals } = policySchema.parse({
    limiter: { name: 'checkout', rate: 1, capacity: 1 },
    signals: { s: SIGNALS[kind] },
  });
  const signal = signals.s as SourcedSignal;
  const source = createSource(signal, { env: { ADDRESS: address }, clock: systemClock, log });
  const found = (await source.look([signal])).get(signal) as Missing;
  await source.close();
  expect(found).toMatchObject({
    ...{ kind: 'missing', reason: 'error' },
    detail: `the variable ADDRESS holds no ${kind}:// address`,
  });
  expect(mendOf(signal, found)).toContain(`begins with ${kind}://`);
});
