import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { prometheus, scrape } from '../../src/policy/author.js';
import { policySchema } from '../../src/policy/schema.js';
import { createHttpClient } from '../../src/sense/http-get.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen } from '../../src/sense/source.js';
import { createSource, type SourcedSignal, sourceKey } from '../../src/sense/sources.js';
import { type HostileServer, type Hostility, startHostile } from '../support/hostile-server.js';
import { keptLog } from '../support/kept-log.js';

/** Where the deadline is what is tested. */
const SHORT_MS = 400;
const TOKEN = 'tok-3n-hunter2';

let server: HostileServer;
let elsewhere: HostileServer;
const logged = keptLog();
const { log } = logged;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  elsewhere = await startHostile();
  server = await startHostile(`${elsewhere.url}/metrics`);
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
  server.mode = 'none';
  server.body = '';
  server.statusFor = () => 200;
  server.contentType = 'text/plain';
  server.seen.length = 0;
});
afterAll(() => {
  server.close();
  elsewhere.close();
});

const secret = {
  token: { env: 'TOKEN' },
  headers: { 'X-Scope-OrgID': 'team-a', 'X-Api-Key': { env: 'API_KEY' } },
};

const KINDS = {
  prometheus: () => prometheus('sum(x)', { url: server.url, ...secret }),
  scrape: () => scrape.gauge(server.url, 'x', { ...secret }),
} as const;

/** What each of them takes for a good answer, and says 7 of. */
const GOOD = {
  prometheus: () =>
    JSON.stringify({
      status: 'success',
      data: { resultType: 'vector', result: [{ metric: {}, value: [1_700_000_000, '7'] }] },
    }),
  scrape: () => '# TYPE x gauge\nx 7\n',
};

/** Longer than a policy may say, where the deadline is not what is tested: the machine may be busy. */
function source(kind: keyof typeof KINDS, deadlineMs = 30_000) {
  const limiter = { name: 'checkout', rate: 1, capacity: 1 };
  const { signals } = policySchema.parse({ limiter, signals: { s: KINDS[kind]() } });
  const signal = { ...signals.s, deadlineMs } as SourcedSignal;
  const env = { TOKEN, API_KEY: 'key-hunter2' };
  const made = createSource(signal, { env, clock: systemClock, log });
  ending.push(() => made.close());
  return async (): Promise<Seen | Missing> => (await made.look([signal])).get(signal)!;
}

const CASES: [Hostility, Missing['reason'], RegExp][] = [
  ['hang', 'timeout', /no answer within 400 ms/],
  ['slowloris', 'timeout', /no answer within 400 ms/],
  ['drop', 'unreachable', /hang up|ECONNRESET/],
  ['drop-midway', 'unreachable', /aborted|ECONNRESET|terminated/],
  ['500', 'error', /500: it is in trouble itself/],
  ['503', 'error', /503/],
  ['401', 'error', /401: it wants other credentials/],
  ['announced-large', 'error', /larger than 10 MB/],
  ['redirect-loop', 'error', /redirects more than 3 times/],
  ['redirect-away', 'error', /redirects to http:\/\/127\.0\.0\.1:\d+, which is not followed/],
  ['invalid-utf8', 'error', /not UTF-8/],
  ['gzip', 'error', /answers in gzip/],
  ['html', 'error', /not that of a Prometheus API|text\/html/],
];

describe.each(['prometheus', 'scrape'] as const)('%s', (kind) => {
  test.each(CASES)(
    'C58: %s is missing (%s), within the deadline, without secrets',
    async (mode, reason, detail) => {
      server.mode = mode;
      const look = source(kind, reason === 'timeout' ? SHORT_MS : undefined);
      const seen = (await look()) as Missing;
      expect(seen).toMatchObject({ kind: 'missing', reason });
      expect(seen.detail).toMatch(detail);
      expect(seen.detail).not.toMatch(/hunter2/);
      expect(elsewhere.seen).toEqual([]);
    },
  );

  test('a flood is cut off after 10 MB', async () => {
    server.mode = 'large';
    const seen = (await source(kind)()) as Missing;
    expect(seen.detail).toMatch(/larger than 10 MB/);
  });

  test('credentials and tenant go with each request, and follow a redirect within the origin', async () => {
    server.mode = 'redirect-within';
    server.body = GOOD[kind]();
    expect(await source(kind)()).toMatchObject({ kind: 'value', value: 7 });
    expect(server.seen.length).toBeGreaterThanOrEqual(2);
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({
        authorization: `Bearer ${TOKEN}`,
        'x-scope-orgid': 'team-a',
        'x-api-key': 'key-hunter2',
      });
    }
  });

  test('after failures it is left alone for a while, and the log says of whom, without secrets', async () => {
    server.mode = '500';
    const look = source(kind);
    await expect.poll(look, { timeout: 10_000 }).toMatchObject({ reason: 'breaker_open' });
    const asked = server.seen.length;
    await look();
    expect(server.seen.length).toBe(asked);
    expect(logged.text).toContain('does not answer (500');
    expect(logged.text).not.toMatch(/hunter2/);
  });

  test('a look that hangs ends on close', async () => {
    server.mode = 'hang';
    const look = source(kind);
    const hanging = look();
    for (const end of ending.splice(0)) await end();
    expect(await hanging).toMatchObject({ kind: 'missing' });
  });
});

const answer = (result: unknown, more: object = {}) =>
  JSON.stringify({ status: 'success', data: { resultType: 'vector', result }, ...more });

test.each([
  ['no JSON', '{"status":"succ', /not that of a Prometheus API/],
  ['null', 'null', /not that of a Prometheus API/],
  ['a number for a text', answer([{ metric: {}, value: [1, 7] }]), /not the form of the API/],
  ['no value', answer([{ metric: {} }]), /histograms, not numbers/],
  ['an error with 200', '{"status":"error","error":"storage is gone"}', /says: storage is gone/],
  ['a result that is no list', answer({ 0: 1 }), /not the form of the API/],
  ['no number', answer([{ metric: {}, value: [1, 'seven'] }]), /NaN|made of nothing/],
])('prometheus, lies: %s', async (_what, body, detail) => {
  server.body = body;
  const seen = (await source('prometheus')()) as Missing;
  expect(seen.kind).toBe('missing');
  expect(seen.detail).toMatch(detail);
});

test('a hundred queries share a few connections, and keep them from look to look', async () => {
  server.body = GOOD.prometheus();
  const target = { url: new URL(server.url), headers: {}, tls: {} };
  const clients = Array.from({ length: 100 }, () => {
    const client = createHttpClient(target, { accept: 'application/json', reuse: true });
    ending.push(() => client.close());
    return client;
  });
  const before = server.connections;
  const round = () =>
    Promise.all(clients.map((each) => each.get(target.url, AbortSignal.timeout(50_000))));
  await round();
  const made = server.connections - before;
  expect(made).toBeLessThanOrEqual(32);
  await round();
  expect(server.connections - before).toBe(made);
});

test('an answer that warns of not being whole is no answer', async () => {
  const series = [{ metric: {}, value: [1, '7'] }];
  server.body = answer(series, { warnings: ['store eu-1 is unreachable'] });
  expect(await source('prometheus')()).toMatchObject({
    kind: 'missing',
    reason: 'partial',
    detail: expect.stringContaining('store eu-1'),
  });
});

test('VictoriaMetrics says that its answer is partial in a word of its own', async () => {
  server.body = answer([{ metric: {}, value: [1, '7'] }], { isPartial: true });
  expect(await source('prometheus')()).toMatchObject({ kind: 'missing', reason: 'partial' });
  server.body = answer([{ metric: {}, value: [1, '7'] }], { isPartial: false });
  expect(await source('prometheus')()).toMatchObject({ kind: 'value', value: 7 });
});

test.each([
  [503, 'missing'],
  [429, 'missing'],
  [422, 'value'],
  [400, 'value'],
])('a server that answers the query, and its age with %i, gives a %s', async (status, kind) => {
  server.body = GOOD.prometheus();
  server.statusFor = (path) => (path.includes('timestamp') ? status : 200);
  expect((await source('prometheus')()).kind).toBe(kind);
});

test('a % in the address of the environment stands for itself, and is no fault of ours', async () => {
  server.body = GOOD.scrape();
  const { signals } = policySchema.parse({
    limiter: { name: 'checkout', rate: 1, capacity: 1 },
    signals: { s: scrape.gauge({ env: 'PAGE' }, 'x') },
  });
  const env = { PAGE: server.url.replace('//', '//reader:100%@') };
  const signal = { ...signals.s, deadlineMs: 30_000 } as SourcedSignal;
  expect(sourceKey(signal, env)).toEqual(expect.any(String));
  const made = createSource(signal, { env, clock: systemClock, log });
  ending.push(() => made.close());
  expect((await made.look([signal])).get(signal)).toMatchObject({ kind: 'value', value: 7 });
  const credentials = Buffer.from('reader:100%').toString('base64');
  expect(server.seen[0]!.headers.authorization).toBe(`Basic ${credentials}`);
});

test('words of a server are short in a detail, however long it made them', async () => {
  server.body = answer([{ metric: {}, value: [1, '7'] }], { warnings: ['w'.repeat(1e6)] });
  expect(((await source('prometheus')()) as Missing).detail!.length).toBeLessThanOrEqual(500);
  const label = 'l'.repeat(50_000);
  server.body = answer([
    { metric: { label, a: '1' }, value: [1, '7'] },
    { metric: { label, a: '2' }, value: [1, '7'] },
  ]);
  const several = (await source('prometheus')()) as Missing;
  expect(several).toMatchObject({ reason: 'ambiguous' });
  expect(several.detail!.length).toBeLessThanOrEqual(500);
  expect(several.detail).toContain('give aggregate');
});

test.each([
  ['no metrics', 'Welcome!\n', /no metric|no value/],
  ['no number', 'x seven\n', /no value/],
  ['labels that are none', 'x{a=1} 7\n', /labels that are none/],
  ['an unclosed brace', 'x{a="1" 7\n', /no metric/],
  ['NaN', 'x NaN\n', /NaN/],
  ['infinity', 'x +Inf\n', /Infinity/],
  ['below zero', 'x -3\n', /-3/],
  ['a series twice', 'x 7\nx 8\n', /line 2 repeats a series/],
  ['one line of megabytes', `x{a="${'\\n'.repeat(2e6)}"} 7\n`, /longer than 100 kB/],
  ['a counter', '# TYPE x counter\nx 7\n', /is a counter/],
])('scrape, lies: %s', async (_what, body, detail) => {
  server.body = body;
  const seen = (await source('scrape')()) as Missing;
  expect(seen.kind).toBe('missing');
  expect(seen.detail).toMatch(detail);
});
