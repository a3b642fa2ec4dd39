/** Whether Redis is away, as the turns of many limiters tell it. */
import { expect, test } from 'vitest';
import { createTurnFailures } from '../../src/daemon/turn-failures.js';
import { FlyballError } from '../../src/errors.js';
import type { Logger } from '../../src/log.js';
import { createMetrics } from '../../src/report/metrics.js';

function failures() {
  const events: unknown[] = [];
  const write = (of: { event?: string }) => events.push(of.event);
  const log = { error: write, info: write } as unknown as Logger;
  const metrics = createMetrics('d1');
  const redisUp = async () => (await metrics.redisUp.get()).values[0]?.value;
  return { events, redisUp, of: createTurnFailures({ log, metrics }) };
}

test('one server of a Cluster is away, the others answer: it is away until each limiter reaches it', async () => {
  const { of, events, redisUp } = failures();
  for (let turn = 0; turn < 10; turn++) {
    of.failed('a', new Error('CLUSTERDOWN'));
    of.worked('b');
    expect(of.redisAway()).toBe('CLUSTERDOWN (turns of a)');
    expect(await redisUp()).toBe(0);
  }
  of.worked('a');
  expect([of.redisAway(), await redisUp()]).toEqual([null, 1]);
  expect(events).toEqual(['tick_failed', 'tick_recovered']);
});

test('a thousand limiters at once are named in one line; a fault of ours is no outage', () => {
  const { of } = failures();
  of.failed('own', new FlyballError('FLYBALL_E_AUDIT_BROKEN', 'the chain breaks'));
  expect(of.redisAway()).toBeNull();
  for (let i = 0; i < 1000; i++) of.failed(`l${i}`, new Error('Connection is closed.'));
  expect(of.redisAway()).toBe('Connection is closed. (turns of l0, l1, l2, l3, l4 and 995 more)');
});
