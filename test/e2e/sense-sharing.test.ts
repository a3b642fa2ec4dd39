import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import { createSampler, type Sampler } from '../../src/sense/sampler.js';
import { createSourcePool } from '../../src/sense/source-pool.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const log = createLog({ level: 'silent' });

/** A page of one gauge that counts how often it was asked, and answers when it is told to. */
interface Page {
  url: string;
  asked: number;
  delayMs: number;
  value: number;
}

let redis: TestRedis;
const servers: Server[] = [];
const ending: (() => Promise<void>)[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const end of ending.splice(0)) await end();
  for (const server of servers.splice(0)) server.closeAllConnections();
});
afterAll(() => redis.stop());

async function page(delayMs = 0): Promise<Page> {
  const server = createServer((_request, response) => {
    state.asked += 1;
    const text = `queue_length ${state.value}\n`;
    setTimeout(() => response.setHeader('content-type', 'text/plain').end(text), state.delayMs);
  });
  servers.push(server);
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  const { port } = server.address() as AddressInfo;
  const state: Page = { url: `http://127.0.0.1:${port}/metrics`, asked: 0, delayMs, value: 7 };
  return state;
}

const gauge = (url: string, more = {}) => ({
  ...{ source: 'scrape', stat: 'gauge', metric: 'queue_length', url },
  ...more,
});

function pool(everyMs = 500) {
  return createSourcePool({ env: {}, log, clock: systemClock, everyMs });
}

function sampler(
  sources: ReturnType<typeof pool>,
  signals: Record<string, unknown>,
  options: { name?: string; patienceMs?: number } = {},
): Sampler {
  const { name = 'checkout', ...more } = options;
  const policy = resolvePolicy({ limiter: { name, rate: 10, capacity: 10 }, signals } as never);
  const made = createSampler({
    ...{ redis: redis.client(), policy, address: { name }, clock: systemClock, sources },
    ...more,
  });
  ending.push(() => made.close());
  return made;
}

test('a slow source delays neither the tick nor the others; the next tick has its answer, with its age', async () => {
  const quick = await page();
  const slow = await page(600);
  const signals = { quick: gauge(quick.url), slow: gauge(slow.url, { deadlineMs: 1_000 }) };
  const from = sampler(pool(0), signals, { patienceMs: 150 });
  const first = await from.read();
  expect(first.signals.slow).toMatchObject({ kind: 'missing', reason: 'not_started' });
  await expect
    .poll(async () => (await from.read()).signals.quick, { timeout: 10_000 })
    .toMatchObject({ kind: 'value', value: 7 });

  await expect
    .poll(async () => (await from.read()).signals.slow, { interval: 50, timeout: 10_000 })
    .toMatchObject({ kind: 'value', value: 7 });
  // Read while the next look is under way: what is known is 0.6 s old or more, and says so.
  const { atMs, signals: later } = await from.read();
  expect(later.slow).toMatchObject({ kind: 'value' });
  expect(atMs - (later.slow as { atMs: number }).atMs).toBeGreaterThan(500);
  // The same look again is a repetition, to the bit.
  expect((await from.read()).signals.slow).toBe(later.slow);
});

test('what many limiters read is read once a tick', async () => {
  const shared = await page();
  const sources = pool(60_000);
  const many = Array.from({ length: 50 }, (_, i) =>
    sampler(sources, { queue: gauge(shared.url) }, { name: `l${i}`, patienceMs: 5000 }),
  );
  const readings = await Promise.all(many.map((one) => one.read()));
  expect(readings.map(({ signals }) => signals.queue)).toEqual(
    readings.map(() => expect.objectContaining({ kind: 'value', value: 7 })),
  );
  expect(sources.size).toBe(1);
  // A page may be taken a few times at once when it is first met; never once a limiter.
  expect(shared.asked).toBeLessThan(10);
});

test('sources are opened with their first reader and closed with the last; one that two read stays open', async () => {
  const one = await page();
  const two = await page();
  const sources = pool(0);
  const before = sampler(sources, { a: gauge(one.url), b: gauge(two.url) }, { patienceMs: 5000 });
  await before.read();
  expect(sources.size).toBe(2);
  // A policy that changed: the new one is opened before the old one is closed.
  const after = sampler(sources, { b: gauge(two.url) }, { patienceMs: 5000 });
  await before.close();
  await before.close();
  expect(sources.size).toBe(1);
  expect((await after.read()).signals.b).toMatchObject({ kind: 'value' });
  await after.close();
  expect(sources.size).toBe(0);
});

test('equal signals under two names, and a signal that joins later, are both answered', async () => {
  const shared = await page();
  const sources = pool(60_000);
  const first = sampler(
    sources,
    { a: gauge(shared.url), b: gauge(shared.url) },
    { patienceMs: 5000 },
  );
  expect((await first.read()).signals).toMatchObject({ a: { value: 7 }, b: { value: 7 } });
  shared.value = 9;
  // Nobody has asked for this one yet: it need not wait for the next tick.
  const joined = sampler(
    sources,
    { c: gauge(shared.url, { unit: 'seconds' }) },
    { patienceMs: 5000 },
  );
  expect((await joined.read()).signals.c).toMatchObject({ kind: 'value', value: 9000 });
});
