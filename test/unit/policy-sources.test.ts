import { expect, test } from 'vitest';
import {
  custom,
  definePolicy,
  env,
  mysql,
  postgres,
  prometheus,
  scrape,
  telemetry,
} from '../../src/policy/author.js';
import { policyHash } from '../../src/policy/hash.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { selectorsOf } from '../../src/sense/promql-selectors.js';

const limiter = { name: 'checkout', rate: 100, capacity: 200 };
const url = env('PROMETHEUS_URL');

function faults(signal: unknown, more: object = {}): string[] {
  const result = parsePolicy({ limiter, signals: { s: signal }, ...more }, 'p.ts');
  return (result.faults ?? []).map(({ field, message }) => `${field} ${message}`);
}

function only(signal: unknown, more: object = {}): string {
  const said = faults(signal, more);
  expect(said).toHaveLength(1);
  return said[0]!;
}

test('every word for a signal gives a valid one, and what came out comes out the same', () => {
  const policy = definePolicy({
    limiter,
    signals: {
      waiting: postgres.waiting({ url: env('DATABASE_URL'), for: ['Lock'] }),
      lag: postgres.replicaLag({ url: env('DATABASE_URL') }),
      running: mysql.threadsRunning({ url: env('MYSQL_URL') }),
      locks: mysql.lockTime({ url: env('MYSQL_URL'), deadlineMs: '500ms' }),
      queue: prometheus('sum(queue)', { url, aggregate: 'max', maxAge: '1m' }),
      p95: prometheus('latency', { url, unit: 'seconds', token: env('PROM_TOKEN') }),
      depth: scrape.gauge('http://app:9100/metrics', 'depth', { labels: { shard: ['a', 'b'] } }),
      rate: scrape.rate(env('PAGE_URL'), 'jobs_total'),
      bad: scrape.share(env('PAGE_URL'), 'r_total', { labels: { code: '500' }, over: {} }),
      wait: scrape.quantile(env('PAGE_URL'), 'wait_seconds', 'p99.9', { unit: 'seconds' }),
      own: custom(async () => 1, { unit: 'ratio', deadlineMs: 100 }),
      loop: telemetry.eventLoopDelay('p99'),
      cpu: telemetry.cpu(),
      denied: telemetry.deniedRatio(),
      coded: telemetry.errorRatio({ code: 'HTTP_503', upstream: 'pay' }),
    },
    objective: {
      lag: { below: '5s' },
      locks: { below: '100ms' },
      p95: { below: '250ms' },
      bad: { below: '1%' },
      wait: { below: '1s' },
      own: { below: '80%' },
      loop: { below: '50ms' },
      cpu: { below: '80%' },
      queue: { below: 100 },
    },
  });
  const first = parsePolicy(policy, 'p.ts');
  if (first.faults) throw new Error(JSON.stringify(first.faults));
  const again = parsePolicy(JSON.parse(JSON.stringify(first.policy)), 'p.ts');
  expect(again).toEqual(first);
  expect(first.policy.signals.wait).toMatchObject({ of: 0.999 });
  // What an option's default is, is not written into stored policies.
  expect(Object.keys(first.policy.signals.rate!)).toEqual(['source', 'stat', 'metric', 'url']);
  if (again.faults) throw new Error('faults');
  expect(policyHash(again.policy)).toBe(policyHash(first.policy));
});

test('secrets that are written out are refused, and not repeated', () => {
  const said = [
    only(prometheus('x', { url: 'http://me:hunter2@prom:9090' })),
    only(prometheus('x', { url: 'http://prom:9090?api_key=hunter2' })),
    only(scrape.gauge('http://app/metrics?token=hunter2', 'x')),
    only(prometheus('x', { url, headers: { Authorization: 'Bearer hunter2' } })),
    only(prometheus('x', { url, headers: { 'X-Api-Key': 'hunter2' } })),
    only(mysql.waiting({ url: 'mysql://me:hunter2@db/shop' })),
    only(prometheus('x', { url, token: 'hunter2' as never })),
  ];
  for (const text of said) {
    expect(text).toMatch(/secret|password|env/);
  }
  expect(said.join()).not.toContain('hunter2');
  // A tenant is no secret.
  expect(faults(prometheus('x', { url, headers: { 'X-Scope-OrgID': 'team-a' } }))).toEqual([]);
});

test('addresses, credentials and certificates that do not fit are named with the mend', () => {
  expect(only(prometheus('x', { url: 'prom:9090' }))).toMatch(/^signals\.s\.url is not an address/);
  expect(only(mysql.waiting({ url: 'postgres://db/shop' }))).toMatch(/not a MySQL address/);
  const basic = { user: 'me', password: env('P') };
  expect(only(prometheus('x', { url, basic, token: env('T') }))).toMatch(/Keep one/);
  expect(only(prometheus('x', { url, tls: { cert: '/c.pem' } }))).toMatch(/tls\.key is missing/);
  expect(only(prometheus('x', { url: 'http://prom:9090', tls: { ca: '/c.pem' } }))).toMatch(
    /no meaning for http/,
  );
  expect(only({ ...postgres.connectionsRatio({ url: env('D') }), for: ['Lock'] })).toMatch(
    /only says which waits/,
  );
});

test('metrics and queries that cannot give one number are named before anything is asked', () => {
  const page = env('PAGE_URL');
  expect(only(scrape.gauge(page, 'requests_total'))).toMatch(/Use scrape\.rate\(\)/);
  expect(only(scrape.quantile(page, 'wait_seconds_bucket', 'p95'))).toMatch(/"wait_seconds"/);
  expect(only(scrape.quantile(page, 'w', 'p95', { labels: { le: '1' } }))).toMatch(/one bucket/);
  expect(only(scrape.quantile(page, 'w', 'px' as never))).toMatch(/quantile between 0 and 1/);
  expect(only(prometheus('sum(x', { url }))).toMatch(/1 "\(" but 0 "\)"/);
  expect(only(prometheus('x[5m]', { url }))).toMatch(/gives a range/);
  expect(only(prometheus(' ', { url }))).toMatch(/PromQL expression/);
  expect(faults(prometheus('count(x{a="("})', { url }))).toEqual([]);
});

test('a level in another unit says how to give the signal its unit', () => {
  const objective = { objective: { s: { below: '250ms' } } };
  expect(only(prometheus('x', { url }), objective)).toMatch(/unit: 'seconds' or 'milliseconds'/);
  expect(only(prometheus('x', { url }), { objective: { s: { below: '1%' } } })).toMatch(
    /unit: 'ratio'/,
  );
  expect(faults(prometheus('x', { url, unit: 'seconds' }), objective)).toEqual([]);
  expect(only(scrape.rate(url, 'x_total'), objective)).not.toMatch(/unit:/);
});

test('the series that a query reads are found, and nothing that is no series', () => {
  const cases: [string, string[]][] = [
    ['up', ['up']],
    [
      'sum(rate(http_requests_total{code=~"5..",a="}{"}[1m] offset 1h))',
      ['http_requests_total{code=~"5..",a="}{"}'],
    ],
    ['sum by (le, job) (rate(x_bucket[5m:30s] @ end()))', ['x_bucket']],
    ['sum without(a) (x) / on(b) group_left(c) y', ['x', 'y']],
    ['{__name__="a:b:c"} > bool 5', ['{__name__="a:b:c"}']],
    ['1 + 2e3 - Inf', []],
    ['vector(1) or x # y', ['x']],
    ['label_replace(x, "a", "$1", "b", "(.*)")', ['x']],
    ['a and b unless c or a', ['a', 'b', 'c']],
    ['histogram_quantile(0.9, x) + x', ['x']],
  ];
  for (const [query, selectors] of cases) {
    expect({ query, selectors: selectorsOf(query) }).toEqual({ query, selectors });
  }
});
