import { type ChildProcess, fork } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry, Summary } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { manualClock, systemClock } from '../../src/clock.js';
import { scrape } from '../../src/policy/author.js';
import { policySchema } from '../../src/policy/schema.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen } from '../../src/sense/source.js';
import { createSource, type SourcedSignal, sourceKey } from '../../src/sense/sources.js';
import { freePort } from '../support/redis-server.js';

let page: Server;
let url: string;
let registry = new Registry();
/** Instead of the registry's page. */
let told: string | null = null;
let contentType = '';
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  page = createServer(async (_request, response) => {
    response.setHeader('content-type', contentType || registry.contentType);
    response.end(told ?? (await registry.metrics()));
  });
  await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
  url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/metrics`;
});
beforeEach(() => {
  registry = new Registry();
  told = null;
  contentType = '';
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(() => {
  page.close();
});

type Written = ReturnType<(typeof scrape)['rate' | 'gauge' | 'share' | 'quantile' | 'mean']>;

function resolved(written: Written): SourcedSignal {
  const limiter = { name: 'checkout', rate: 1, capacity: 1 };
  const { s } = policySchema.parse({ limiter, signals: { s: written } }).signals;
  // Longer than a policy may say: the machine may be busy.
  return { ...s, deadlineMs: 30_000 } as SourcedSignal;
}

/** Looks at all of them, `seconds` after the last look. */
function looker(...written: Written[]) {
  const clock = manualClock();
  const signals = written.map(resolved);
  const made = createSource(signals[0]!, { env: {}, clock, log: pino({ level: 'silent' }) });
  ending.push(() => made.close());
  return async (seconds = 1): Promise<(Seen | Missing)[]> => {
    clock.advance(seconds * 1000);
    const look = await made.look(signals);
    return signals.map((signal) => look.get(signal)!);
  };
}

test('gauges as they are; many series only by labels or a named aggregate', async () => {
  const queue = new Gauge({
    name: 'queue',
    help: 'q',
    labelNames: ['shard'],
    registers: [registry],
  });
  queue.set({ shard: 'a' }, 3);
  queue.set({ shard: 'b"\\\n' }, 5);
  const look = looker(
    scrape.gauge(url, 'queue', { labels: { shard: 'a' } }),
    scrape.gauge(url, 'queue', { labels: { shard: 'b"\\\n' } }),
    scrape.gauge(url, 'queue', { aggregate: 'sum' }),
    scrape.gauge(url, 'queue', { aggregate: 'max', labels: { shard: ['a', 'c'] } }),
    scrape.gauge(url, 'queue'),
    scrape.gauge(url, 'queue', { labels: { shard: 'z' } }),
    scrape.gauge(url, 'queues'),
  );
  const seen = await look();
  expect(seen.slice(0, 4).map((each) => each.kind === 'value' && each.value)).toEqual([3, 5, 8, 3]);
  expect(seen.slice(4)).toMatchObject([
    { reason: 'ambiguous', detail: expect.stringContaining('labels (shard)') },
    { reason: 'no_data', detail: expect.stringContaining('{"shard":"z"}') },
    { reason: 'no_data', detail: expect.stringContaining('no metric queues') },
  ]);
});

test('C60: rates, shares, quantiles and means are what was gained between two pages; nothing gained is no quantile', async () => {
  const requests = new Counter({
    name: 'requests_total',
    help: 'r',
    labelNames: ['code'],
    registers: [registry],
  });
  const latency = new Histogram({
    name: 'latency_seconds',
    help: 'l',
    buckets: [0.1, 0.2, 0.4],
    registers: [registry],
  });
  requests.inc({ code: '200' }, 1000);
  for (let i = 0; i < 50; i++) latency.observe(0.35);
  const look = looker(
    scrape.rate(url, 'requests_total'),
    scrape.share(url, 'requests', { labels: { code: ['500', '503'] }, over: {} }),
    scrape.quantile(url, 'latency_seconds', 'p50', { unit: 'seconds' }),
    scrape.mean(url, 'latency_seconds', { unit: 'seconds' }),
    scrape.quantile(url, 'latency_seconds', 'p99', { unit: 'seconds' }),
  );
  for (const first of await look()) expect(first).toMatchObject({ reason: 'not_started' });

  requests.inc({ code: '200' }, 60);
  for (let i = 0; i < 100; i++) latency.observe(0.15);
  const [rate, share, p50, mean, p99] = await look(2);
  expect(rate).toMatchObject({ value: 30 });
  // No failure was ever seen, and the whole is there: none happened.
  expect(share).toMatchObject({ value: 0, count: 60, detail: expect.stringContaining('500') });
  expect(p50).toMatchObject({ value: expect.closeTo(150, 6), count: 100 });
  expect(mean).toMatchObject({ value: expect.closeTo(150, 6), count: 100 });
  expect(p99).toMatchObject({ value: expect.closeTo(199, 6) });

  // The first failures of all are failures, though their series was not there before.
  requests.inc({ code: '503' }, 20);
  requests.inc({ code: '200' }, 20);
  for (let i = 0; i < 10; i++) latency.observe(9);
  const after = await look(1);
  expect(after[0]).toMatchObject({ value: 40 });
  expect(after[1]).toMatchObject({ value: 0.5, count: 40 });
  expect(after[2]).toMatchObject({
    value: 400,
    detail: expect.stringContaining('truth is higher'),
  });

  const [none, unknown, empty] = await look(1);
  expect(none).toMatchObject({ value: 0 });
  expect(unknown).toMatchObject({ reason: 'no_traffic' });
  expect(empty).toMatchObject({ reason: 'no_traffic' });
});

test('a metric of another kind is named, with what to use', async () => {
  new Counter({ name: 'requests_total', help: 'r', registers: [registry] }).inc(5);
  const wait = new Summary({ name: 'wait_seconds', help: 'w', registers: [registry] });
  wait.observe(0.2);
  new Gauge({ name: 'depth', help: 'd', registers: [registry] }).set(3);
  const look = looker(
    scrape.rate(url, 'depth'),
    scrape.share(url, 'requests_total', { over: { metric: 'depth' } }),
    scrape.gauge(url, 'requests_total'),
    scrape.quantile(url, 'wait_seconds', 'p95'),
    scrape.mean(url, 'wait_seconds', { unit: 'seconds' }),
    scrape.gauge(url, 'wait_seconds', { labels: { quantile: '0.5' }, unit: 'seconds' }),
  );
  await look();
  wait.observe(0.4);
  expect(await look()).toMatchObject([
    { reason: 'error', detail: 'depth is a gauge, not a counter. Use scrape.gauge.' },
    { reason: 'error', detail: 'depth is a gauge, not a counter. Use scrape.gauge.' },
    { reason: 'error', detail: expect.stringContaining('Use scrape.rate') },
    { reason: 'error', detail: expect.stringContaining('it is a summary') },
    { value: expect.closeTo(400, 6), count: 1 },
    { kind: 'value' },
  ]);
});

test('OpenMetrics: exemplars, times of its own, and a page that breaks off', async () => {
  contentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
  const lines = (requests: number, at: number) =>
    [
      '# TYPE requests counter',
      `requests_total{code="200"} ${requests} # {trace_id="a b"} 0.67 1700000000`,
      `requests_created{code="200"} 1700000000.123`,
      '# TYPE depth gauge',
      `depth{q="}"} 4.5e1 ${at}`,
      '# EOF',
    ].join('\n');
  told = lines(10, 1_700_000_000);
  const look = looker(scrape.rate(url, 'requests'), scrape.gauge(url, 'depth'));
  await look();
  told = lines(25, 1_700_000_000);
  const [rate, depth] = await look();
  expect(rate).toMatchObject({ value: 15 });
  expect(depth).toMatchObject({ value: 45 });
  // Its own time has not moved: it is the same reading.
  const [, again] = await look();
  expect(again).toBe(depth);
  told = lines(30, 1_700_000_001).slice(0, -1);
  expect((await look())[0]).toMatchObject({
    reason: 'error',
    detail: expect.stringContaining('EOF is missing'),
  });
});

test('C61: one restart is a reset, once; the rate goes on from there', async () => {
  const text = (start: number, requests: number) =>
    `process_start_time_seconds ${start}\n# TYPE r_total counter\nr_total ${requests}\n`;
  told = text(1000, 500);
  const look = looker(scrape.rate(url, 'r_total'));
  await look();
  told = text(1000, 600);
  expect(await look()).toMatchObject([{ value: 100 }]);
  told = text(2000, 3);
  expect(await look()).toMatchObject([{ reason: 'reset' }]);
  told = text(2000, 40);
  expect(await look()).toMatchObject([{ reason: 'not_started' }]);
  told = text(2000, 90);
  expect(await look()).toMatchObject([{ value: 50 }]);
});

test('C61: pages that take turns (100, 40, 110, 45) are no bursts: they are named, and nothing is read', async () => {
  const pages = [100, 40, 110, 45, 120, 50, 130, 55, 140, 60];
  let turn = 0;
  const alternating = createServer((_request, response) => {
    response.end(`# TYPE r_total counter\nr_total ${pages[turn++ % pages.length]}\n`);
  });
  await new Promise<void>((ok) => alternating.listen(0, '127.0.0.1', ok));
  ending.push(() => alternating.close());
  const { port } = alternating.address() as AddressInfo;
  const look = looker(scrape.rate(`http://127.0.0.1:${port}/`, 'r_total'));
  for (let i = 0; i < 40; i++) {
    expect(await look()).toMatchObject([
      { reason: 'ambiguous', detail: expect.stringContaining('more than one process answers') },
    ]);
  }
});

test('a page that is lost for a while is no burst when it comes back', async () => {
  const text = (requests: number) => `# TYPE r_total counter\nr_total ${requests}\n`;
  told = text(100);
  const look = looker(scrape.rate(url, 'r_total'));
  await look();
  told = text(90_000);
  // Over a minute old, the last page says nothing of now.
  expect(await look(61)).toMatchObject([{ reason: 'not_started' }]);
  told = text(90_010);
  expect(await look()).toMatchObject([{ value: 10 }]);
});

test('a page that breaks off, and is whole again, is no burst; a series that comes back lower is a reset', async () => {
  const text = (a: number | null, b: number) =>
    `# TYPE r_total counter\n${a === null ? '' : `r_total{of="a"} ${a}\n`}r_total{of="b"} ${b}\n`;
  const look = looker(scrape.rate(url, 'r_total'));
  told = text(90_000, 5);
  await look();
  for (const [page, rate] of [
    [text(null, 6), 1],
    [text(null, 8), 2],
    [text(90_010, 8), 10],
    [text(90_011, 8), 1],
  ] as const) {
    told = page;
    expect(await look()).toMatchObject([{ value: rate }]);
  }
  told = text(null, 9);
  await look();
  told = text(3, 10);
  expect(await look()).toMatchObject([{ reason: 'reset' }]);
  told = text(5, 10);
  expect(await look()).toMatchObject([{ value: 2 }]);
});

test('samples of a moment to come are none, and those of long ago are old', async () => {
  const look = looker(scrape.gauge(url, 'g'));
  told = `g 1 ${Date.now() + 86_400_000}\n`;
  expect(await look()).toMatchObject([{ reason: 'clock_skew' }]);
  told = `g 1 ${Date.now() - 86_400_000}\n`;
  const [old] = (await look()) as Seen[];
  expect(old!.monotonicMs).toBeLessThan(-80_000_000);
});

test('signals of one page share one look', () => {
  const [one, other] = [scrape.rate(url, 'a_total'), scrape.gauge(url, 'b')].map(resolved);
  expect(sourceKey(one!, {})).toBe(sourceKey(other!, {}));
  expect(sourceKey(resolved(scrape.gauge(`${url}2`, 'b')), {})).not.toBe(sourceKey(one!, {}));
});

async function startWorkers(workers: number): Promise<{ url: string; child: ChildProcess }> {
  const port = await freePort();
  const script = fileURLToPath(new URL('../support/page-workers.mjs', import.meta.url));
  const child = fork(script, [String(port), String(workers)], { stdio: 'ignore' });
  ending.push(async () => {
    const gone = new Promise((ok) => child.once('exit', ok));
    child.kill('SIGTERM');
    await gone;
  });
  // Their sub-messages are the cluster's own; ours is the one text.
  await new Promise<void>((ok) => child.on('message', (text) => text === 'ready' && ok()));
  return { url: `http://127.0.0.1:${port}/metrics`, child };
}

test('C61: a real page of three workers behind one port is found out at the first look; of one worker it is read', async () => {
  const [three, one] = await Promise.all([startWorkers(3), startWorkers(1)]);
  const signals = [three, one].map(({ url }) => resolved(scrape.rate(url, 'requests_total')));
  const looks = signals.map((signal) => {
    const made = createSource(signal, {
      env: {},
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
    ending.unshift(() => made.close());
    return async () => (await made.look([signal])).get(signal)!;
  });
  expect(await looks[0]!()).toMatchObject({
    reason: 'ambiguous',
    detail: expect.stringContaining('AggregatorRegistry'),
  });
  // Twenty a second, measured over half a second on a machine that may be busy.
  await expect
    .poll(
      async () => {
        const seen = await looks[1]!();
        return seen.kind === 'value' && seen.value > 5 && seen.value < 60;
      },
      { timeout: 20_000, interval: 500 },
    )
    .toBe(true);
});

test('default metrics of a real process are no two processes', async () => {
  collectDefaultMetrics({ register: registry });
  const look = looker(scrape.rate(url, 'process_cpu_seconds_total'));
  const found: string[] = [];
  // On a busy machine a page may be late; it is never two processes.
  await expect
    .poll(
      async () => {
        const [seen] = await look();
        found.push(seen!.kind === 'value' ? 'value' : seen!.reason);
        return found.filter((each) => each === 'value').length;
      },
      { timeout: 50_000 },
    )
    .toBeGreaterThanOrEqual(5);
  expect(found).not.toContain('ambiguous');
  expect(found).not.toContain('reset');
});
