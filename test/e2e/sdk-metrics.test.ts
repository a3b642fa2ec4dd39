import { Counter, Registry, register } from 'prom-client';
import { expect, test } from 'vitest';
import { collectMetrics } from '../../src/enforce/metrics.js';
import type { Limiter } from '../../src/index.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams } from '../support/sdk-params.js';

const bench = sdkBench('metrics');
const { limiter } = bench;

/** Samples of the text format, by name and labels as they stand. */
async function scrape(registry: Registry): Promise<Map<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => /^flyball_/.test(line));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

test('admitted, denied by limit and reason, near the limit, time, revision, state and mode', async () => {
  const api = limiter();
  const { epoch, revision } = await setParams(
    bench.admin,
    { name: api.name },
    { rate: 0.01, capacity: 10, subjectRate: 0.01, subjectCapacity: 3, inFlightMax: 7 },
  );
  const registry = new Registry();
  collectMetrics(api, { register: registry });
  api.expectCompletions();
  const held = await api.take();
  for (let i = 0; i < 8; i++) await api.take();
  for (let i = 0; i < 4; i++) await api.take('ada');
  await api.take('ada');
  const of = await scrape(registry);
  const is = (name: string, labels = '') =>
    of.get(`flyball_enforce_${name}{limiter="${api.name}"${labels}}`);
  // In flight 7 of 7 after seven takes; nothing was done, so the rest was denied by the cap.
  expect(is('admitted_requests_total')).toBe(7);
  expect(is('denied_requests_total', ',limit="in_flight",reason="in_flight"')).toBe(7);
  expect(is('in_flight_requests')).toBe(7);
  expect(is('in_flight_share_requests')).toBe(7);
  expect(is('near_limit_requests_total')).toBe(0);
  expect(is('revision')).toBe(revision);
  expect(is('epoch')).toBe(epoch);
  expect(is('state', ',state="closed"')).toBe(1);
  expect(is('state', ',state="open"')).toBe(0);
  expect(is('mode', ',mode="auto"')).toBe(1);
  expect(is('redis_up')).toBe(1);
  expect(is('redis_calls_total')).toBeGreaterThan(0);
  expect(is('fallback_decisions_total', ',source="local"')).toBe(0);
  expect(is('decision_duration_seconds_count')).toBe(14);
  expect(is('decision_duration_seconds_sum')).toBeGreaterThan(0);
  const buckets = [...of].filter(([key]) => key.includes('_seconds_bucket')).map(([, n]) => n);
  expect(buckets).toEqual([...buckets].sort((a, b) => a - b));
  expect(
    of.get(`flyball_enforce_decision_duration_seconds_bucket{le="+Inf",limiter="${api.name}"}`),
  ).toBe(14);
  held.done();
});

test.each([
  ['the total', {}, undefined, 10],
  ['a subject', { subjectRate: 0.01, subjectCapacity: 5 }, 'ada', 5],
])(
  'near the limit: admitted with a fifth of the capacity left or less, of %s',
  async (_of, own, subject, size) => {
    const api = limiter();
    await setParams(bench.admin, { name: api.name }, { rate: 0.01, capacity: 10, ...own });
    const near: number[] = [];
    for (let i = 0; i <= size; i++) {
      await api.take(subject);
      near.push(api.stats().nearLimit);
    }
    const least = size - size / 5;
    expect(near).toEqual(
      Array.from({ length: size + 1 }, (_, i) => Math.min(size, i + 1) - (least - 1)).map((n) =>
        Math.max(0, n),
      ),
    );
  },
);

test('shadow denials, unmanaged, cached and fallback decisions are told apart', async () => {
  const registry = new Registry();
  const shadow = limiter();
  await setParams(bench.admin, { name: shadow.name }, { mode: 'shadow', rate: 0.01, capacity: 1 });
  const cached = limiter();
  await setParams(bench.admin, { name: cached.name }, { rate: 0.01, capacity: 1 });
  const unmanaged = limiter({ rate: 5 });
  const away = limiter({
    url: 'redis://127.0.0.1:1',
    rate: 5,
    onRedisError: 'closed',
    deadlineMs: 20,
  });
  collectMetrics([shadow, cached, unmanaged], { register: registry });
  collectMetrics(away, { register: registry });
  for (const each of [shadow, cached, unmanaged, away]) {
    for (let i = 0; i < 3; i++) await each.take();
  }
  const of = await scrape(registry);
  const is = (name: string, each: Limiter, labels = '') =>
    of.get(`flyball_enforce_${name}{limiter="${each.name}"${labels}}`);
  expect(is('shadow_denied_requests_total', shadow, ',limit="rate",reason="rate"')).toBe(2);
  expect(is('admitted_requests_total', shadow)).toBe(3);
  expect(is('cached_decisions_total', cached)).toBe(1);
  expect(is('denied_requests_total', cached, ',limit="rate",reason="rate"')).toBe(2);
  expect(is('unmanaged_decisions_total', unmanaged)).toBe(3);
  expect(is('decisions_total', unmanaged, ',source="unmanaged"')).toBe(3);
  expect(is('revision', unmanaged)).toBeUndefined();
  expect(is('fallback_decisions_total', away, ',source="closed"')).toBe(3);
  expect(is('denied_requests_total', away, ',limit="redis",reason="redis_away"')).toBe(3);
});

test('on the registry that a service already has, added to and taken off, never counted twice', async () => {
  const own = new Counter({ name: 'shop_orders_total', help: 'Orders.' });
  const [first, second] = [limiter({ rate: 5 }), limiter({ rate: 5 })];
  const stopFirst = collectMetrics(first);
  const stopSecond = collectMetrics([second]);
  await first.take();
  own.inc();
  const text = await register.metrics();
  expect(text).toContain('shop_orders_total 1');
  expect(text).toContain(`flyball_enforce_admitted_requests_total{limiter="${first.name}"} 1`);
  expect(text).toContain(`flyball_enforce_admitted_requests_total{limiter="${second.name}"} 0`);
  expect(await register.metrics()).toBe(text);
  stopFirst();
  expect(await register.metrics()).not.toContain(first.name);
  stopSecond();
  const left = (await register.getMetricsAsJSON()).map(({ name }) => name);
  expect(left).toEqual(['shop_orders_total']);
  // Cleared by somebody: collected anew.
  collectMetrics(first);
  register.clear();
  collectMetrics(first);
  expect(await register.metrics()).toContain(first.name);
  register.clear();
});

test('no label grows with traffic: none but limiter, source, limit, reason, state, mode and the edges of time', async () => {
  const api = limiter({ rate: 1, capacity: 1, perSubject: { rate: 1, capacity: 1 } });
  const registry = new Registry();
  collectMetrics(api, { register: registry });
  for (let i = 0; i < 30; i++) await api.take(`user:${i}`);
  const text = await registry.metrics();
  expect(text).not.toContain('user:');
  const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label));
  expect([...labels].sort()).toEqual(
    ['le', 'limit', 'limiter', 'mode', 'reason', 'source', 'state', 'would'].filter((l) =>
      labels.has(l),
    ),
  );
});

test('the OpenMetrics format and workers of a cluster can read it too', async () => {
  const api = limiter({ rate: 5 });
  const registry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  collectMetrics(api, { register: registry });
  await api.take();
  const text = await registry.metrics();
  expect(text).toContain(`flyball_enforce_admitted_requests_total{limiter="${api.name}"} 1`);
  expect(text).toContain('# EOF');
  const json = await registry.getMetricsAsJSON();
  const times = json.find(({ name }) => name === 'flyball_enforce_decision_duration_seconds');
  expect(times).toMatchObject({ type: 'histogram', aggregator: 'sum' });
});

test('what is no limiter, and no registry, is refused with what to give', () => {
  expect(() => collectMetrics({} as never)).toThrow(/collectMetrics got .*createLimiter/);
  expect(() => collectMetrics([], { register: {} as never })).toThrow(/register is .*prom-client/);
});
