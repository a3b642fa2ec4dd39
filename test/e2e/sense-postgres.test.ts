import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type RunningPostgres, startPostgres } from '../../src/demo/postgres.js';
import { env, postgres, telemetry } from '../../src/policy/author.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import type { Missing } from '../../src/sense/readings.js';
import { createSampler } from '../../src/sense/sampler.js';
import type { Seen } from '../../src/sense/source.js';
import { createSourcePool } from '../../src/sense/source-pool.js';
import { createSource, type SourcedSignal } from '../../src/sense/sources.js';
import { keptLog } from '../support/kept-log.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js';

let server: RunningPostgres;
let redis: TestRedis;
let proxy: TcpProxy;
const logged = keptLog();
const { log } = logged;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  [server, redis] = await Promise.all([
    startPostgres({ settings: { max_connections: 23 } }),
    startRedis(),
  ]);
  proxy = await startProxy(server.port);
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
  proxy.mode = 'pass';
});
afterAll(async () => {
  await proxy.close();
  await Promise.all([server.stop(), redis.stop()]);
});

const proxied = (url = server.url) => url.replace(`:${server.port}/`, `:${proxy.port}/`);

type Postgres = Extract<SourcedSignal, { source: 'postgres' }>;
type Stat = Postgres['stat'];

interface Asked {
  look(stat?: Stat, waits?: Postgres['for']): Promise<Seen | Missing>;
  close(): Promise<void>;
}

/** Longer than a policy may say, where the deadline is not what is tested: the machine may be busy. */
function source(url = server.url, deadlineMs = 30_000): Asked {
  const signalOf = (stat: Stat) => ({ source: 'postgres', stat, url, deadlineMs }) as const;
  const made = createSource(signalOf('waiting'), { env: {}, clock: systemClock, log });
  ending.push(() => made.close());
  return {
    async look(stat = 'waiting', waits = undefined) {
      const signal = { ...signalOf(stat), ...(waits && { for: waits }) };
      return (await made.look([signal])).get(signal)!;
    },
    close: () => made.close(),
  };
}

async function client(url = server.url): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url, application_name: 'service' });
  made.on('error', () => {});
  await made.connect();
  ending.push(() => made.end());
  return made;
}

async function value(from: Asked, stat: Stat): Promise<number> {
  const look = await from.look(stat);
  if (look.kind === 'missing') throw new Error(JSON.stringify(look));
  return look.value;
}

/** A busy machine may be slow to connect; what is tested begins with a source that answers. */
async function answers(from: Asked): Promise<void> {
  const kind = async () => (await from.look('connectionsRatio')).kind;
  await expect.poll(kind, { timeout: 20_000 }).toBe('value');
}

test('sessions that wait for a lock are counted, with what they wait for; sleeping and idle ones are not', async () => {
  const holder = await client();
  await holder.query(
    'CREATE TABLE stock (id int PRIMARY KEY, n int); INSERT INTO stock VALUES (1, 9)',
  );
  const from = source();
  await answers(from);
  const beforeMs = systemClock.monotonicMs();
  const calm = await from.look();
  expect(calm).toEqual({ kind: 'value', value: 0, monotonicMs: expect.any(Number), count: 1 });
  expect((calm as Seen).monotonicMs).toBeGreaterThanOrEqual(beforeMs);

  await holder.query('BEGIN; UPDATE stock SET n = n - 1 WHERE id = 1');
  const waiters = await Promise.all([client(), client(), client()]);
  const updates = waiters.map((waiter) => waiter.query('UPDATE stock SET n = n - 1 WHERE id = 1'));
  const sleeper = await client();
  const sleep = sleeper.query('SELECT pg_sleep(60)').catch(() => {});
  await expect.poll(() => value(from, 'waiting'), { timeout: 20_000 }).toBe(3);
  // One waits for the row's holder, the others for their place in line.
  const locks = expect.stringMatching(/^Lock:\w+ \d(, Lock:\w+ \d)*$/);
  expect(await from.look()).toMatchObject({ value: 3, detail: locks });
  expect(await value(from, 'longestTransactionMs')).toBeGreaterThan(0);
  expect(await from.look('waiting', ['Lock', 'IO'])).toMatchObject({ value: 3, detail: locks });
  expect(await from.look('waiting', ['IO', 'LWLock'])).toMatchObject({ value: 0 });

  await holder.query('COMMIT');
  await Promise.all(updates);
  await expect.poll(() => value(from, 'waiting'), { timeout: 20_000 }).toBe(0);
  const killer = await client();
  await killer.query(
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'",
  );
  await sleep;
});

test('connections are a share of what services can use; another database counts there, and nowhere else', async () => {
  const admin = await client();
  await admin.query('CREATE DATABASE other');
  const others = await Promise.all(
    [1, 2, 3].map(() => client(server.url.replace(/postgres$/, 'other'))),
  );
  await others[0]!.query('BEGIN');
  const from = source();
  await answers(from);
  // admin, three others and our own, of 23 - 3 reserved.
  expect(await value(from, 'connectionsRatio')).toBeCloseTo(5 / 20, 6);
  expect(await value(from, 'longestTransactionMs')).toBe(0);
});

test('sessions hidden from the role are said, not read as zero', async () => {
  const admin = await client();
  await admin.query("CREATE ROLE watcher LOGIN PASSWORD 'w'");
  const from = source(server.url.replace(/\/\/[^@]*@/, '//watcher:w@'));
  await answers(from);
  for (const stat of ['waiting', 'longestTransactionMs'] as const) {
    expect(await from.look(stat)).toMatchObject({
      kind: 'missing',
      reason: 'error',
      detail: expect.stringContaining('GRANT pg_monitor'),
    });
  }
  expect((await from.look('connectionsRatio')).kind).toBe('value');
  await admin.query('GRANT pg_monitor TO watcher');
  await expect.poll(async () => (await from.look()).kind, { timeout: 20_000 }).toBe('value');
});

test('C58: a database that hangs, refuses or cuts is missing within the deadline, is left alone for a while, and heals', async () => {
  const from = source(proxied(), 500);
  await answers(from);
  proxy.mode = 'hang';
  expect(await from.look()).toMatchObject({ kind: 'missing', reason: 'timeout' });
  proxy.mode = 'refuse';
  proxy.cut();
  const reasons = new Set<string>();
  await expect
    .poll(
      async () => {
        const look = await from.look();
        if (look.kind === 'missing') reasons.add(look.reason);
        return [...reasons];
      },
      { timeout: 20_000 },
    )
    .toContain('breaker_open');
  expect([...reasons]).toContain('unreachable');
  proxy.mode = 'pass';
  await answers(from);
  expect(logged.text).toContain('PostgreSQL does not answer');
  expect(logged.text).toContain('PostgreSQL answers again');
});

test('a look under way is shared, and closing does not wait for a database that hangs', async () => {
  const from = source(proxied());
  await answers(from);
  const [one, two] = await Promise.all([from.look(), from.look()]);
  expect((one as Seen).monotonicMs).toBe((two as Seen).monotonicMs);
  proxy.mode = 'hang';
  const hanging = from.look();
  await from.close();
  expect(await hanging).toMatchObject({ kind: 'missing' });
});

test('a wrong password is an error whose words hold no secret', async () => {
  const from = source(server.url.replace(/:[0-9a-f]{24}@/, ':hunter2@'));
  const look = await from.look();
  expect(look).toMatchObject({ kind: 'missing', reason: 'error' });
  expect(JSON.stringify(look)).not.toContain('hunter2');
  expect(logged.text).not.toContain('hunter2');
});

test('a pooler that refuses our deadline on the server is named', async () => {
  const said = 'SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0';
  const pooler = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const head = Buffer.alloc(5, 'E');
      head.writeInt32BE(4 + said.length, 1);
      socket.end(Buffer.concat([head, Buffer.from(said)]));
    });
  });
  await new Promise<void>((ok) => pooler.listen(0, '127.0.0.1', ok));
  ending.push(() => pooler.close());
  const { port } = pooler.address() as AddressInfo;
  expect(await source(`postgres://me@127.0.0.1:${port}/shop`).look()).toMatchObject({
    reason: 'error',
    detail: expect.stringMatching(/unsupported startup parameter.*not of a pooler/),
  });
});

const poolOf = (env: NodeJS.ProcessEnv) =>
  createSourcePool({ env, log, clock: systemClock, everyMs: 0 });

function sampler(url: string | undefined, deadlineMs = 800) {
  const policy = resolvePolicy({
    limiter: { name: 'checkout', rate: 100, capacity: 200 },
    signals: {
      p95: telemetry.latency('p95'),
      dbWait: postgres.waiting({ url: env('SHOP_DB'), deadlineMs }),
      dbFull: postgres.connectionsRatio({ url: env('SHOP_DB'), deadlineMs }),
    },
  });
  const made = createSampler({
    redis: redis.client(),
    policy,
    address: { name: 'checkout' },
    clock: systemClock,
    sources: poolOf(url === undefined ? {} : { SHOP_DB: url }),
    patienceMs: Number.POSITIVE_INFINITY,
  });
  ending.push(() => made.close());
  return made;
}

test('a tick has every reading, in Redis’s time; signals of one address share one query', async () => {
  const from = sampler(server.url);
  await expect
    .poll(async () => (await from.read()).signals.dbWait?.kind, { timeout: 20_000 })
    .toBe('value');
  const [seconds] = (await redis.client().time()) as [number, number];
  const readings = await from.read();
  expect(Math.abs(readings.atMs - Number(seconds) * 1000)).toBeLessThan(10_000);
  // Nobody reports here.
  expect(readings.telemetry).toMatchObject({ kind: 'missing', reason: 'no_data' });
  expect(Object.keys(readings.signals)).toEqual(['dbWait', 'dbFull']);
  expect(readings.signals.dbWait).toEqual({
    kind: 'value',
    value: 0,
    atMs: readings.atMs,
    count: 1,
  });
  // Ours is the only connection.
  expect(readings.signals.dbFull).toMatchObject({ kind: 'value', value: 1 / 20 });
  const later = await from.read();
  expect(later.atMs).toBeGreaterThan(readings.atMs);
});

test('C58: with Redis and database away a tick still ends, and says so of each', async () => {
  const own = await startRedis();
  ending.push(() => own.stop());
  const policy = resolvePolicy({
    limiter: { name: 'checkout', rate: 100, capacity: 200 },
    signals: { dbWait: postgres.waiting({ url: env('SHOP_DB'), deadlineMs: 200 }) },
  });
  const from = createSampler({
    redis: own.client({ maxRetriesPerRequest: 1 }),
    policy,
    address: { name: 'checkout' },
    clock: systemClock,
    sources: poolOf({ SHOP_DB: proxied() }),
    patienceMs: Number.POSITIVE_INFINITY,
  });
  ending.push(() => from.close());
  await from.read();
  own.pause();
  proxy.mode = 'hang';
  const { telemetry: seen, signals } = await from.read();
  expect(seen).toMatchObject({ kind: 'missing', reason: 'timeout' });
  expect(signals.dbWait).toMatchObject({ kind: 'missing', reason: 'timeout' });
});

test('an address that is not in the environment is named', async () => {
  const { signals } = await sampler(undefined).read();
  expect(signals.dbWait).toMatchObject({
    kind: 'missing',
    reason: 'error',
    detail: expect.stringContaining('SHOP_DB is not set'),
  });
});
