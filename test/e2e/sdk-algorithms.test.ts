import { expect, test } from 'vitest';
import { FlyballTypeError } from '../../src/index.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('algo');
const { limiter } = bench;

test.each([
  ['sliding-log', 'wl'],
  ['sliding-counter', 'wc'],
  ['fixed-window', 'wf'],
  ['auto', 'wl'],
] as const)('%s: the limit is rate × window, in keys of its own', async (algorithm, kind) => {
  const api = limiter({ algorithm, windowMs: 86_400_000, rate: 5 / 86_400 });
  const decisions = await Promise.all(Array.from({ length: 7 }, () => api.take('user:1')));
  expect(decisions.filter((each) => each.allowed).length).toBe(5);
  expect(decisions[6]).toMatchObject({ reason: 'rate', limit: 'rate', delayMs: 0 });
  const { taken, bucket } = limiterKeys({ name: api.name });
  expect(await bench.admin.exists(taken(kind, null, false))).toBe(1);
  expect(await bench.admin.exists(bucket)).toBe(0);
  expect((await api.peek()).remaining).toBe(0);
});

test('leaky-bucket: each take is told when it may proceed, and run waits for it', async () => {
  const api = limiter({ algorithm: 'leaky-bucket', rate: 20, capacity: 4 });
  const decisions = await Promise.all(Array.from({ length: 5 }, () => api.take()));
  expect(decisions.map((each) => each.allowed)).toEqual([true, true, true, true, false]);
  expect(decisions[0]!.delayMs).toBe(0);
  expect(decisions[3]!.delayMs).toBeGreaterThan(100);
  expect(decisions[3]!.delayMs).toBeLessThanOrEqual(150);
  for (const each of decisions) each.done();
  await until('there is room', async () => (await api.peek()).remaining >= 1);
  const from = performance.now();
  const [delay, after] = await api.run(
    null,
    (decision) => [decision.delayMs, performance.now()] as const,
  );
  // A timer may fire up to a millisecond early.
  expect(after - from).toBeGreaterThanOrEqual(delay - 2);
});

test('an aborted wait ends run, and what it reports is cancelled', async () => {
  const api = limiter({ algorithm: 'leaky-bucket', rate: 0.1, capacity: 4 });
  await api.take();
  const controller = new AbortController();
  const running = api.run(null, () => 'never', { signal: controller.signal });
  await until('it waits', () => api.stats().inFlight === 1);
  controller.abort();
  await expect(running).rejects.toThrow('abort');
  expect(api.stats().inFlight).toBe(0);
});

test('running services follow the algorithm of the adopted policy, and its end', async () => {
  const api = limiter({ rate: 100, capacity: 5000 });
  const address = { name: api.name };
  const { taken } = limiterKeys(address);
  await setParams(bench.admin, address, { rate: 0.05, capacity: 5000 });
  await api.take();
  const file = {
    limiter: { ...address, rate: 0.05, capacity: 5000, algorithm: 'auto', window: '1m' },
  };
  const parsed = parsePolicy(file, 'api.ts');
  if (!('policy' in parsed)) throw new Error(JSON.stringify(parsed.faults));
  const { algorithm, windowMs, cells } = paramsFromPolicy(parsed.policy);
  expect({ algorithm, windowMs, cells }).toEqual({
    algorithm: 'sliding-log',
    windowMs: 60_000,
    cells: 0,
  });
  await setParams(bench.admin, address, { algorithm, windowMs, cells });
  await until('the log is used', async () => {
    await api.take();
    return (await bench.admin.exists(taken('wl', null, false))) === 1;
  });
  const decisions = await Promise.all(Array.from({ length: 6 }, () => api.take()));
  expect(decisions.filter((each) => each.allowed).length).toBeLessThanOrEqual(3);
  await setParams(bench.admin, address, { algorithm: '', windowMs: 0 });
  await until('the bucket is used again', async () => (await api.take()).allowed);
});

test('params without the field, as older daemons write them, leave the choice to the code', async () => {
  const api = limiter({ rate: 1, capacity: 10, algorithm: 'fixed-window', windowMs: 60_000 });
  await setParams(bench.admin, { name: api.name }, { rate: 1, capacity: 10 });
  const { params, taken } = limiterKeys({ name: api.name });
  await bench.admin.hdel(params, 'algorithm', 'windowMs', 'cells');
  expect((await api.take()).source).toBe('redis');
  expect(await bench.admin.exists(taken('wf', null, false))).toBe(1);
});

test.each([
  [{ algorithm: 'sliding' }, 'algorithm is "sliding". Use \'auto\' or'],
  [{ algorithm: 'sliding-log' }, 'windowMs is undefined'],
  [{ algorithm: 'sliding-log', windowMs: 0.5 }, 'windowMs is 0.5'],
  [{ algorithm: 'sliding-log', windowMs: 100, rate: 1 }, 'from 1 to 1e9 tokens; it is 0.1'],
  [{ algorithm: 'auto', windowMs: 1000 }, "'auto' only with a rate"],
  [{ algorithm: 'sliding-counter', windowMs: 1000, cells: 0 }, 'cells is 0'],
  [{ windowMs: 1000 }, "not 'token-bucket'"],
] as [object, string][])('refused: %j', (options, message) => {
  expect(() => limiter(options)).toThrow(FlyballTypeError);
  expect(() => limiter(options)).toThrow(message);
});

test.each([
  [{ algorithm: 'sliding-log' }, 'limiter.window', 'is missing'],
  [{ window: '1m' }, 'limiter.window', 'a token-bucket has no window'],
  [{ algorithm: 'leaky-bucket', cells: 6 }, 'limiter.cells', 'a leaky-bucket has no window'],
  [{ algorithm: 'auto', window: '10ms' }, 'limiter.window', 'below limiter.maxCost 1'],
  [{ algorithm: 'sliding', window: '1m' }, 'limiter.algorithm', 'token-bucket'],
] as [object, string, string][])('a policy with %j is refused', (more, field, message) => {
  const parsed = parsePolicy(
    { limiter: { name: 'api', rate: 10, capacity: 10, ...more } },
    'api.ts',
  );
  expect('faults' in parsed && parsed.faults).toEqual([
    expect.objectContaining({ field, message: expect.stringContaining(message) }),
  ]);
});
