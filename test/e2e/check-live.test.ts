import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Counter, Gauge, Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkLive, type LiveFinding } from '../../src/cli/check-live.js';
import { type RunningPostgres, startPostgres } from '../../src/demo/postgres.js';
import { env, postgres, prometheus, scrape } from '../../src/policy/author.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import { cli } from '../support/cli-run.js';
import { until } from '../support/daemon.js';
import { startPrometheus, type TestPrometheus } from '../support/prometheus-server.js';
import { freePort } from '../support/redis-server.js';
import { makeCertificates } from '../support/redis-tls.js';

const registry = new Registry();
const requests = new Counter({
  ...{ name: 'http_requests_total', help: 'requests', labelNames: ['code', 'route'] },
  registers: [registry],
});
new Gauge({ name: 'queue_length', help: 'jobs that wait', registers: [registry] }).set(3);

const certificates = makeCertificates();
/** bcrypt of `pa55word`. */
const PASSWORD_HASH = '$2b$04$abcdefghijklmnopqrstuupn6eahIV9Ml9lnlQtVt1Wes7/c.Zj26';

let page: Server;
let pageUrl: string;
let metrics: TestPrometheus;
let secured: TestPrometheus;
let database: RunningPostgres;
let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-live-'));
  requests.inc({ code: '200', route: '/pay' }, 5);
  requests.inc({ code: '500', route: '/login' }, 2);
  let scraped = 0;
  page = createServer(async (_request, response) => {
    scraped += 1;
    response.setHeader('content-type', registry.contentType);
    response.end(await registry.metrics());
  });
  await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
  const target = `127.0.0.1:${(page.address() as AddressInfo).port}`;
  pageUrl = `http://${target}/metrics`;
  const web = {
    tls_server_config: { cert_file: certificates.cert, key_file: certificates.key },
    basic_auth_users: { flyball: PASSWORD_HASH },
  };
  [metrics, secured, database] = await Promise.all([
    startPrometheus({ targets: [target] }),
    startPrometheus({ webConfig: JSON.stringify(web), ready: async () => scraped > 0 }),
    startPostgres({ settings: { max_connections: 20 } }),
  ]);
  const isScraped = async () => (await ask('queue_length')).status === 'ok';
  await until('the first scrape', isScraped);
}, 90_000);
afterAll(async () => {
  page.closeAllConnections();
  page.close();
  await Promise.all([metrics.stop(), secured.stop(), database.stop()]);
  rmSync(dir, { recursive: true });
});

async function one(signal: object, environment: NodeJS.ProcessEnv = {}): Promise<LiveFinding> {
  const limiter = { name: 'checkout', rate: 10, capacity: 10 };
  const policy = resolvePolicy({ limiter, signals: { s: signal } } as never);
  const loaded = { file: 'checkout.ts', policy, hash: '', json: '' };
  const [finding] = await checkLive([loaded], environment);
  return finding!;
}

const ask = (query: string) => one(prometheus(query, { url: metrics.url }));

test('an empty vector: the name that was meant, the values that a label has, the labels that there are', async () => {
  expect(await ask('sum(rate(http_request_total[1m]))')).toMatchObject({
    status: 'fail',
    mend: 'There is no metric http_request_total. Did you mean http_requests_total?',
  });
  expect(await ask('sum(http_requests_total{code="50O"})')).toMatchObject({
    status: 'fail',
    mend: 'No series of http_requests_total has code="50O": its values of code are "200", "500".',
  });
  const { mend } = await ask('sum(http_requests_total{status="500"})');
  expect(mend).toMatch(/^http_requests_total has no label status: it has .*code.*route/);
  expect((await ask('sum(http_requests_total{code="200",route="/login"})')).mend).toMatch(
    /but none meets all of them/,
  );
  expect((await ask('sum(nothing_like_it)')).mend).toMatch(/Nor is there one like it/);
  // As the mends say.
  expect(await ask('sum(http_requests_total{code="500"})')).toMatchObject({
    status: 'ok',
    value: 2,
  });
});

test('a server that wants credentials or another authority, a path or query that is wrong', async () => {
  const url = secured.url.replace('http:', 'https:');
  expect((await one(prometheus('up', { url }))).mend).toMatch(
    /tls: \{ ca: '\/path\/to\/ca.pem' \}/,
  );
  const tls = { ca: certificates.ca };
  expect((await one(prometheus('up', { url, tls }))).mend).toMatch(/^Give its credentials/);
  const basic = { user: 'flyball', password: env('PASSWORD') };
  const signal = prometheus('vector(1)', { url, tls, basic });
  expect(await one(signal, {})).toMatchObject({
    status: 'fail',
    mend: 'Set PASSWORD where the daemon and this command run.',
  });
  expect(await one(signal, { PASSWORD: 'pa55word' })).toMatchObject({ status: 'ok', value: 1 });

  const wrongPath = await one(prometheus('up', { url: `${metrics.url}/graph/x` }));
  expect(wrongPath.mend).toMatch(/the part before \/api\/v1/);
  expect((await ask('rate(up)')).mend).toBe('Mend the PromQL of the signal.');
});

test('a host that nobody knows, a port where nobody listens', async () => {
  const lost = await one(prometheus('up', { url: 'http://no-such-host.invalid:9090' }));
  expect(lost).toMatchObject({ status: 'fail', reason: 'unreachable' });
  expect(lost.mend).toMatch(/name of the host is not known from here/);
  const port = await freePort();
  for (const [signal, usual] of [
    [prometheus('up', { url: `http://127.0.0.1:${port}` }), 'Prometheus: 9090'],
    [postgres.waiting({ url: `postgres://127.0.0.1:${port}/shop` }), 'PostgreSQL: 5432'],
    [{ source: 'mysql', stat: 'waiting', url: `mysql://127.0.0.1:${port}/shop` }, 'MySQL: 3306'],
  ] as const) {
    expect((await one(signal)).mend).toContain(`the port right (${usual})?`);
  }
});

test('a page: the name that was meant, the values that a label has, a page that is none', async () => {
  expect((await one(scrape.gauge(pageUrl, 'queue_lenght'))).mend).toBe(
    'The page has no metric queue_lenght. Did you mean queue_length?',
  );
  const labels = { code: '503' };
  expect(await one(scrape.rate(pageUrl, 'http_requests_total', { labels }))).toMatchObject({
    ...{ status: 'quiet', value: 0 },
    mend: 'No series of http_requests_total has code="503": its values of code are "200", "500". If it has not happened yet, 0 is right.',
  });
  expect(await one(scrape.gauge(pageUrl, 'queue_length'))).toMatchObject({
    status: 'ok',
    value: 3,
  });
  expect((await one(scrape.quantile(pageUrl, 'queue_length', 'p95'))).mend).toBe(
    'queue_length is no histogram: read it with scrape.gauge, or scrape.rate if it counts.',
  );
  expect(await one(scrape.gauge(pageUrl, 'queue_length', { unit: 'seconds' }))).toMatchObject({
    message: expect.stringMatching(/^answers 3000 ms, /),
  });
  // A rate needs two pages: it is asked for twice.
  expect(await one(scrape.rate(pageUrl, 'http_requests_total'))).toMatchObject({ status: 'ok' });
});

test('PostgreSQL: a missing grant, and the same role once it is granted; a wrong role, password, database, TLS', async () => {
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query("CREATE ROLE watcher LOGIN PASSWORD 'secret'");
  // Somebody whose sessions the role may not see.
  const others = [new pg.Client(database.url), new pg.Client(database.url)];
  const at = (user: string, rest = '/postgres') =>
    one(postgres.waiting({ url: env('DB') }), {
      DB: `postgres://${user}@127.0.0.1:${database.port}${rest}`,
    });
  for (const other of others) await other.connect();
  try {
    const hidden = await at('watcher:secret');
    expect(hidden).toMatchObject({ status: 'fail', reason: 'error' });
    expect(hidden.mend).toBe('As a superuser of that server: GRANT pg_monitor TO watcher;');
    await admin.query('GRANT pg_monitor TO watcher');
    expect(await at('watcher:secret')).toMatchObject({ status: 'ok', value: 0 });

    expect((await at('watcher:wrong')).mend).toMatch(/^Mend user and password/);
    expect((await at('nobody:x')).mend).toMatch(/Mend user and password|Create the role/);
    expect((await at('watcher:secret', '/shop')).mend).toMatch(/^Mend the database/);
    expect((await at('watcher:secret', '/postgres?sslmode=verify-full')).mend).toMatch(
      /has no TLS/,
    );
    const told = JSON.stringify(await at('watcher:wr0ng'));
    expect(told).not.toContain('wr0ng');
  } finally {
    for (const each of [...others, admin]) await each.end();
  }
});

test('PostgreSQL: the missing grant is told before anybody is there to be hidden', async () => {
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query('CREATE DATABASE idle');
  await admin.query(`CREATE ROLE "Early-Bird" LOGIN PASSWORD 'secret'`);
  const ask = () =>
    one(postgres.waiting({ url: env('DB') }), {
      DB: `postgres://Early-Bird:secret@127.0.0.1:${database.port}/idle`,
    });
  try {
    expect(await ask()).toMatchObject({
      ...{ status: 'quiet', value: 0 },
      mend: 'As a superuser of that server: GRANT pg_monitor TO "Early-Bird";',
    });
    await admin.query('GRANT pg_monitor TO "Early-Bird"');
    expect(await ask()).toMatchObject({ status: 'ok', value: 0, mend: null });
  } finally {
    await admin.end();
  }
});

test('flyball check --live: a line and a mend for each signal, exit 1; all well, exit 0', async () => {
  const file = join(dir, 'checkout.mjs');
  const write = (query: string) =>
    writeFileSync(
      file,
      `export default { limiter: { name: 'checkout', rate: 10, capacity: 10 }, signals: {
        queue: { source: 'prometheus', stat: 'query', query: '${query}', url: '${metrics.url}' },
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 } } };`,
    );
  write('sum(queue_lengths)');
  const failed = await cli(['check', '--live', file]);
  expect(failed.code).toBe(1);
  expect(failed.stdout).toMatch(/fail {2}checkout\.queue {2}prometheus: no_data: /);
  expect(failed.stdout).toContain('→ There is no metric queue_lengths. Did you mean queue_length?');
  write('sum(queue_length)');
  const well = await cli(['check', '--live', '--json', file]);
  expect(well.code).toBe(0);
  expect(JSON.parse(well.stdout)).toMatchObject({
    schema: 1,
    valid: true,
    live: [{ limiter: 'checkout', signal: 'queue', status: 'ok', value: 3, mend: null }],
  });
  // Without the flag nothing is asked.
  expect(JSON.parse((await cli(['check', '--json', file])).stdout).live).toBeUndefined();
});
