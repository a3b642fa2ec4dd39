/** Two limiters of one downstream, led by daemons of their own: never more than it leaves, parted by need. */
import { expect, type TestContext, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { createLimiter } from '../../src/index.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { namesThatLead, policyText, until } from '../support/daemon.js';
import { ownBench } from '../support/daemon-bench.js';

vi.setConfig({ testTimeout: 180_000 });
const USABLE = 160;
const NAMES = ['orders', 'refunds'] as const;
const hash = fleetKeys().downstream('orders-db');
function policy(name: string, mode = 'auto'): string {
  const text = policyText(
    `signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
  objective: { p95: { below: '1s' } },
  control: { law: 'adaptive' },`,
    `name: '${name}', rate: 75, capacity: 50, inFlightMax: 20,
    downstream: { name: 'orders-db', capacity: 200, headroom: '20%' }`,
  );
  return text.replace('max: 400', 'max: 150').replace("mode: 'auto'", `mode: '${mode}'`);
}

/** A Redis of its own, and daemons and services on it: these tests mostly wait, and so run side by side. */
async function open(context: TestContext) {
  const bench = await ownBench(context, NAMES.length);
  const { server, redis } = bench;

  /** Requests of 5 ms, as many a second as `load` says now. */
  const traffic = (name: string, load: () => number): void => {
    const client = server.client({ autoResendUnfulfilledCommands: false });
    const limiter = createLimiter({ name, redis: client, rate: 75, capacity: 50, inFlightMax: 20 });
    const work = () => new Promise((ok) => setTimeout(ok, 5));
    let due = 0;
    const timer = setInterval(() => {
      for (due += load() / 50; due >= 1; due -= 1) limiter.run(undefined, work).catch(() => {});
    }, 20);
    context.onTestFinished(async () => {
      clearInterval(timer);
      await limiter.close();
      client.disconnect();
    });
  };

  const rates = async () => {
    const pipe = redis.multi();
    for (const name of NAMES) pipe.hget(limiterKeys({ name }).params, 'rate');
    const [orders, refunds] = (await pipe.exec())!.map(([, rate]) => Number(rate));
    return { orders: orders!, refunds: refunds!, sum: orders! + refunds! };
  };

  return { ...bench, traffic, rates };
}

test.concurrent('the sum keeps to what the downstream leaves, while the rates follow the need from one to the other', async (context) => {
  const { redis, setups, traffic, rates } = await open(context);
  for (const [i, name] of NAMES.entries()) setups[i]!.write(`${name}.ts`, policy(name));
  const names = namesThatLead(NAMES);
  await Promise.all(
    setups.map((setup, i) => setup.start({ FLYBALL_NAME: names[i] }).line('lease_taken')),
  );
  const load = { orders: 220, refunds: 5 };
  for (const name of NAMES) traffic(name, () => load[name]);
  let most = 0;
  const seen = async (holds: (now: Awaited<ReturnType<typeof rates>>) => boolean) => {
    const now = await rates();
    most = Math.max(most, now.sum);
    return holds(now);
  };
  await until('orders has what refunds does not need', () => seen((now) => now.orders > 90));
  Object.assign(load, { orders: 5, refunds: 220 });
  await until('the rate follows the need', () => seen((now) => now.refunds > 90));
  expect(most).toBeLessThanOrEqual(USABLE);

  const told = Object.values(await redis.hgetall(hash)).map((text) => JSON.parse(text));
  expect(told).toHaveLength(2);
  expect(told.reduce((sum, { held }) => sum + held, 0)).toBeLessThanOrEqual(USABLE);
  expect(await redis.pttl(hash)).toBeGreaterThan(0);

  // I13: what came down to its share says so, and is decided so again.
  const { entries } = await readEntries(redis, { name: 'orders' }, { kind: 'change' });
  const shared = entries.find(({ body }) => body.reason === 'downstream_share');
  expect(shared?.body.sentence).toMatch(/its share of orders-db is [\d.]+\/s of 160\/s among 2/);
  expect(await explainEntry(redis, { name: 'orders' }, shared!)).toMatchObject({
    verdict: 'agrees',
  });
  expect((await verifyAudit(redis, { name: 'orders' })).verdict).toBe('consistent');
});

test.concurrent('one that is not moved keeps what it has, the other gets the rest; a hash of another kind moves nobody up', async (context) => {
  const { redis, setups, traffic, rates } = await open(context);
  setups[0]!.write('orders.ts', policy('orders'));
  setups[0]!.write('refunds.ts', policy('refunds', 'recommend'));
  const daemon = setups[0]!.start();
  await daemon.line(
    'downstream_over',
    (line) => line.msg?.includes('refunds is not in mode auto') === true,
  );
  for (const name of NAMES) traffic(name, () => 220);
  await until('orders has the rest', async () => (await rates()).orders === 85);
  expect((await rates()).refunds).toBe(75);

  await redis.del(hash);
  await redis.set(hash, 'x');
  await daemon.line('downstream_unread');
  expect((await readParams(redis, { name: 'orders' })).params!.rate).toBeLessThanOrEqual(85);
  await redis.del(hash);
  await until('both tell again', async () => (await redis.hlen(hash)) === 2);
  expect((await rates()).sum).toBeLessThanOrEqual(USABLE);
});
