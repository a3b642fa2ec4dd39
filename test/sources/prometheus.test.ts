import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { prometheus } from '../../src/policy/author.js';
import { policySchema } from '../../src/policy/schema.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen } from '../../src/sense/source.js';
import { createSource, type SourcedSignal, sourceKey } from '../../src/sense/sources.js';
import { startPrometheus, type TestPrometheus } from '../support/prometheus-server.js';
import { makeCertificates } from '../support/redis-tls.js';

const registry = new Registry();
const queue = new Gauge({
  name: 'queue',
  help: 'jobs that wait',
  labelNames: ['shard'],
  registers: [registry],
});
const requests = new Counter({
  name: 'requests_total',
  help: 'requests',
  labelNames: ['code'],
  registers: [registry],
});
const latency = new Histogram({
  name: 'latency_seconds',
  help: 'time of requests',
  buckets: [0.1, 0.2, 0.4],
  registers: [registry],
});

const certificates = makeCertificates();
/** bcrypt of `pa55word`. */
const PASSWORD_HASH = '$2b$04$abcdefghijklmnopqrstuupn6eahIV9Ml9lnlQtVt1Wes7/c.Zj26';

let page: Server;
let server: TestPrometheus;
let secured: TestPrometheus;
let requestsBegan = 0;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  queue.set({ shard: 'a' }, 3);
  queue.set({ shard: 'b' }, 5);
  requests.inc({ code: '200' }, 1);
  page = createServer(async (_request, response) => {
    requestsBegan += 1;
    response.setHeader('content-type', registry.contentType);
    // A page may say itself of when a sample is: this one is always a minute old.
    const old = `# TYPE lagging gauge\nlagging 7 ${Date.now() - 60_000}\n`;
    response.end((await registry.metrics()) + old);
  });
  await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
  const target = `127.0.0.1:${(page.address() as AddressInfo).port}`;
  const web = {
    tls_server_config: { cert_file: certificates.cert, key_file: certificates.key },
    basic_auth_users: { flyball: PASSWORD_HASH },
  };
  [server, secured] = await Promise.all([
    startPrometheus({ targets: [target] }),
    startPrometheus({
      targets: [target],
      webConfig: JSON.stringify(web),
      // It answers only in TLS: a port that is open is enough.
      ready: async () => requestsBegan > 1,
    }),
  ]);
  while ((await read('sum(queue)')).kind !== 'value') await setTimeout(100);
}, 90_000);
afterEach(async () => {
  server.resume();
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(async () => {
  await Promise.all([server.stop(), secured.stop()]);
  page.close();
});

type Options = Omit<Parameters<typeof prometheus>[1], 'url'> & { url?: string };

/** Longer than a policy may say, where the deadline is not what is tested: the machine may be busy. */
function signalOf(query: string, options: Options = {}): SourcedSignal {
  const url = options.url ?? server.url;
  const written = prometheus(query, { ...options, url });
  const limiter = { name: 'checkout', rate: 1, capacity: 1 };
  const { signals } = policySchema.parse({ limiter, signals: { s: written } });
  return { ...signals.s, deadlineMs: options.deadlineMs ?? 30_000 } as SourcedSignal;
}

function source(query: string, options: Options = {}, env: NodeJS.ProcessEnv = {}) {
  const signal = signalOf(query, options);
  const made = createSource(signal, { env, clock: systemClock, log: pino({ level: 'silent' }) });
  ending.push(() => made.close());
  return async () => (await made.look([signal])).get(signal)!;
}

async function read(query: string, options: Options = {}, env: NodeJS.ProcessEnv = {}) {
  return source(query, options, env)();
}

function number(seen: Seen | Missing): number {
  if (seen.kind === 'missing') throw new Error(JSON.stringify(seen));
  return seen.value;
}

test('one number, of a vector or a scalar; many series only by a named aggregate', async () => {
  expect(number(await read('sum(queue)'))).toBe(8);
  expect(number(await read('scalar(sum(queue)) * 2'))).toBe(16);
  expect(number(await read('1 + 1'))).toBe(2);
  expect(await read('queue')).toMatchObject({
    kind: 'missing',
    reason: 'ambiguous',
    detail: expect.stringMatching(/2 series.*shard.*aggregate/s),
  });
  const by = async (aggregate: 'sum' | 'max' | 'min' | 'avg') =>
    number(await read('queue', { aggregate }));
  expect([await by('sum'), await by('max'), await by('min'), await by('avg')]).toEqual([
    8, 5, 3, 4,
  ]);
});

test('signals of one query are asked together, whatever becomes of the answer', async () => {
  const [sum, max] = [
    signalOf('queue', { aggregate: 'sum' }),
    signalOf('queue', { aggregate: 'max' }),
  ];
  const other = signalOf('queue{shard="a"}');
  expect(sourceKey(sum, {})).toBe(sourceKey(max, {}));
  expect(sourceKey(other, {})).not.toBe(sourceKey(sum, {}));
  const made = createSource(sum, { env: {}, clock: systemClock, log: pino({ level: 'silent' }) });
  ending.push(() => made.close());
  const look = await made.look([sum, max]);
  expect([...look.values()].map(number)).toEqual([8, 5]);
});

test('a reading speaks of the moment of its samples; without newer ones it is the same reading', async () => {
  const look = source('sum(queue)');
  const beganMs = systemClock.monotonicMs();
  const seen = (await look()) as Seen;
  // Scraped once a second, and the last scrape was before the question.
  expect(seen.monotonicMs).toBeLessThan(systemClock.monotonicMs());
  expect(seen.monotonicMs).toBeGreaterThan(beganMs - 30_000);
  // In one second there are more looks than samples.
  const looks: (Seen | Missing)[] = [seen];
  await expect.poll(async () => looks.push(await look()) - new Set(looks).size).toBe(1);
  await expect.poll(look, { timeout: 20_000 }).not.toBe(seen);
});

test('a sample that is a minute old is known to be, and beyond maxAge it is stale', async () => {
  const beganMs = systemClock.monotonicMs();
  const seen = (await read('lagging')) as Seen;
  expect(number(seen)).toBe(7);
  expect(beganMs - seen.monotonicMs).toBeGreaterThan(55_000);
  expect(beganMs - seen.monotonicMs).toBeLessThan(90_000);
  // Of several series the oldest counts, for the number is no newer.
  expect(await read('lagging + on() sum(queue)', { maxAge: '30s' })).toMatchObject({
    kind: 'missing',
    reason: 'stale',
    detail: expect.stringContaining('maxAge (30 s)'),
  });
});

test('C58: nothing found is no zero: an empty vector names what matches nothing, and so does `or vector(0)`', async () => {
  expect(await read('sum(queue{shard="z"})')).toMatchObject({
    kind: 'missing',
    reason: 'no_data',
    detail: expect.stringContaining('No series match queue{shard="z"}'),
  });
  expect(await read('sum(rate(reqests_total[5m])) or vector(0)')).toMatchObject({
    kind: 'missing',
    reason: 'no_data',
    detail: expect.stringContaining('reqests_total'),
  });
  // One part that is not there is zero, for the whole is there.
  const ratio = '(sum(requests_total{code="500"}) or vector(0)) / sum(requests_total)';
  expect(number(await read(ratio, { unit: 'ratio' }))).toBe(0);
});

test('NaN, infinity, ranges, texts and errors of PromQL each have their reason', async () => {
  const cases: [string, string, RegExp][] = [
    ['sum(queue) * 0 / 0', 'not_finite', /NaN: 0 ÷ 0/],
    ['sum(queue) / 0', 'not_finite', /\+Inf/],
    ['queue[5m]', 'error', /matrix.*rate\(…\[1m\]\)/],
    ['"text"', 'error', /string, not numbers/],
    ['sum(queue', 'error', /refuses the query.*parse error/],
    ['0 - sum(queue)', 'not_finite', /-8/],
    ['histogram_quantile(0.95, rate(latency_seconds_bucket[1m]))', 'not_finite', /NaN/],
  ];
  // A rate needs two scrapes.
  const rate = source(cases.at(-1)![0]);
  await expect.poll(rate, { timeout: 20_000 }).not.toMatchObject({ reason: 'no_data' });
  for (const [query, reason, detail] of cases) {
    const seen = await read(query);
    expect({ query, ...seen }).toMatchObject({ query, kind: 'missing', reason });
    expect((seen as Missing).detail).toMatch(detail);
  }
});

test('a quantile of a histogram, in milliseconds', async () => {
  const look = source('histogram_quantile(0.5, rate(latency_seconds_bucket[1m]))', {
    unit: 'seconds',
  });
  await expect
    .poll(
      async () => {
        for (let i = 0; i < 20; i++) latency.observe(0.15);
        const seen = await look();
        return seen.kind === 'value' ? seen.value : seen.detail;
      },
      { timeout: 20_000, interval: 300 },
    )
    .toBeCloseTo(150, 0);
});

test('TLS and passwords: the authority and the user are needed, and what is wrong is named without them', async () => {
  const url = `https://127.0.0.1:${secured.port}`;
  const env = { PROM_PASSWORD: 'pa55word', WRONG: 'hunter2' };
  const basic = { user: 'flyball', password: { env: 'PROM_PASSWORD' } };
  const tls = { ca: certificates.ca };
  await expect
    .poll(async () => (await read('sum(queue)', { url, basic, tls }, env)).kind, {
      timeout: 20_000,
    })
    .toBe('value');
  const wrong = [
    await read('sum(queue)', { url, basic }, env),
    await read('sum(queue)', { url, tls }, env),
    await read('sum(queue)', { url, tls, basic: { ...basic, password: { env: 'WRONG' } } }, env),
    await read('sum(queue)', { url, tls, basic: { ...basic, password: { env: 'NOT_SET' } } }, env),
    await read('sum(queue)', { url, basic, tls: { ca: '/nowhere/ca.pem' } }, env),
    await read('sum(queue)', { url: url.replace('https', 'http'), basic }, env),
    await read('sum(queue)', { url: server.url.replace('http', 'https'), basic }, env),
  ];
  const said = wrong.map((seen) => (seen.kind === 'missing' ? (seen.detail ?? '') : 'a value'));
  const words = [
    /certificate is not accepted.*tls: \{ ca/,
    /401: it wants other credentials/,
    /401/,
    /NOT_SET is not set/,
    /tls\.ca: \/nowhere\/ca\.pem cannot be read/,
    /400|HTTP/,
    /TLS/,
  ];
  said.forEach((text, i) => {
    expect(text).toMatch(words[i]!);
    expect(text).not.toMatch(/pa55word|hunter2|Basic/);
  });
});

test('C58: one that hangs is missing within the deadline, and one that is gone is unreachable', async () => {
  const look = source('sum(queue)', { deadlineMs: 400 });
  await expect.poll(async () => (await look()).kind, { timeout: 20_000 }).toBe('value');
  server.pause();
  // What was on its way when it was stopped may still come.
  await expect
    .poll(look, { timeout: 20_000 })
    .toMatchObject({ kind: 'missing', reason: 'timeout' });
  expect(await read('sum(queue)', { url: 'http://127.0.0.1:1' })).toMatchObject({
    kind: 'missing',
    reason: 'unreachable',
  });
});

test('the PromQL that the guide gives to copy is PromQL', async () => {
  const guide = readFileSync(new URL('../../docs/guides/signals.md', import.meta.url), 'utf8');
  const block = /```promql\n([\s\S]*?)```/.exec(guide)?.[1] ?? '';
  const queries = block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(queries.length).toBeGreaterThan(5);
  for (const query of queries) {
    // Nothing here has such series; a query that is none would be refused.
    expect(await read(query)).toMatchObject({ reason: 'no_data' });
  }
});
