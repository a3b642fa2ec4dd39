/** `draw: 'block'`: decided here from drawn tokens, exact in sum, and bounded when a process dies or the breaker trips. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { BLOCK_LIFE_MS } from '../../src/enforce/block-pool.js';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const NEVER = 0.001;
const bench = sdkBench('block');
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

const limiter = (name: string, options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ name, draw: 'block', ...options });

async function started(change: Parameters<typeof setParams>[2], options = {}): Promise<Limiter> {
  const name = bench.name();
  await setParams(bench.admin, { name }, { rate: NEVER, ...change });
  const api = limiter(name, options);
  await until('its numbers are known', async () => (await api.peek()).source === 'redis');
  return api;
}

/** Takes until blocks decide; returns how many were admitted. */
async function warm(api: Limiter, subject: string | null = null): Promise<number> {
  let admitted = 0;
  await until('blocks decide', async () => {
    const decision = await api.take(subject);
    if (decision.allowed) admitted += 1;
    return decision.source === 'block';
  });
  return admitted;
}

/** A burst here and there, as a service has it. */
async function takes(api: Limiter, count: number, subject: string | null = null) {
  let admitted = 0;
  for (let i = 0; i < count; i++) {
    if ((await api.take(subject)).allowed) admitted += 1;
    if (i % 50 === 0) await new Promise((ok) => setImmediate(ok));
  }
  return admitted;
}

async function left(name: string): Promise<number> {
  const looker = limiter(name, { draw: 'each' });
  return (await looker.peek()).remaining;
}

test('nearly all is decided here, in few calls; what was not used goes back', async () => {
  const api = await started({ capacity: 100_000 });
  let admitted = await warm(api);
  const before = api.stats();
  admitted += await takes(api, 5_000);
  const { calls, decisions } = api.stats();
  const drawn = decisions.block! - (before.decisions.block ?? 0);
  expect(drawn).toBeGreaterThan(4_000);
  expect(calls - before.calls).toBeLessThan(1_000);
  await api.close();
  expect(await left(api.name)).toBe(100_000 - admitted);
});

test('a hot subject is decided here from its own block and the total’s; other subjects ask Redis', async () => {
  const api = await started({ capacity: 50_000, subjectRate: NEVER, subjectCapacity: 4_000 });
  let admitted = await warm(api, 'hot');
  admitted += await takes(api, 2_000, 'hot');
  expect((await api.take('cold')).source).toBe('redis');
  admitted += await takes(api, 5_000, 'hot');
  // Not one more than its capacity, whoever decided.
  expect(admitted).toBe(4_000);
  expect(api.stats().decisions.block).toBeGreaterThan(1_000);
  await api.close();
  expect(await left(api.name)).toBe(50_000 - 4_000 - 1);
});

test('I5: a limiter that closes gives back all it drew, also of many subjects and of draws under way', async () => {
  const api = await started({ capacity: 1e6, subjectRate: NEVER, subjectCapacity: 1_000 });
  const subjects = Array.from({ length: 300 }, (_each, i) => `s${i}`);
  let admitted = 0;
  const takeAll = async () => {
    for (const subject of subjects) {
      // Twice at once: a block is over before all others had their turn.
      for (let i = 0; i < 2; i++) {
        const made = await Promise.all(Array.from({ length: 12 }, () => api.take(subject)));
        admitted += made.filter(({ allowed }) => allowed).length;
      }
    }
  };
  for (let i = 0; i < 2; i++) await takeAll();
  expect(api.stats().decisions.block).toBeGreaterThan(0);
  // The last of them have just asked for more.
  await api.close();
  expect(await left(api.name)).toBe(1e6 - admitted);
});

test('done gives the place in flight back, and the decision counts like any other', async () => {
  const api = await started({ capacity: 10_000, inFlightMax: 3 }, { completions: true });
  await until('its share is known', () => api.stats().share === 3);
  await until('blocks decide', async () => {
    const decision = await api.take();
    decision.done();
    return decision.source === 'block';
  });
  const held = await Promise.all(Array.from({ length: 4 }, () => api.take()));
  expect(held.map(({ reason }) => reason).sort()).toEqual(['in_flight', 'ok', 'ok', 'ok']);
  for (const decision of held) decision.done();
  expect(api.stats().inFlight).toBe(0);
  expect((await api.take()).allowed).toBe(true);
});

test.each([
  ['a small capacity', { capacity: 15 }, {}],
  ['shadow', { capacity: 10_000, mode: 'shadow' as const }, {}],
  ['half-open', { capacity: 10_000, state: 'half-open' as const, probeRate: 1e6 }, {}],
  ['another algorithm', { capacity: 10_000 }, { algorithm: 'fixed-window', windowMs: 1000 }],
  ['draw each', { capacity: 10_000 }, { draw: 'each' }],
])('%s: each take asks Redis', async (_what, change, options) => {
  const api = await started({ rate: 1e6, ...change }, options);
  await takes(api, 300);
  expect(api.stats().decisions.block).toBeUndefined();
});

test('the adopted policy’s choice leads', async () => {
  const api = await started({ capacity: 10_000, terms: '{"draw":"block"}' }, { draw: 'each' });
  await warm(api);
  await setParams(bench.admin, api, { terms: '{"draw":"each"}' });
  await until('the policy is followed', async () => (await api.take()).source === 'redis');
  await until('no block is left', async () => {
    const before = api.stats().decisions.block;
    await takes(api, 20);
    return api.stats().decisions.block === before;
  });
});

test('sheddable takes and parts of a token ask Redis, since a block keeps no reserve for others', async () => {
  const api = await started({ capacity: 10_000 });
  await warm(api);
  expect((await api.take(null, { priority: 'sheddable' })).source).toBe('redis');
  expect((await api.take(null, { cost: 0.5 })).source).toBe('redis');
  expect((await api.take(null, { cost: 2, priority: 'critical' })).source).toBe('block');
});

test('a decision from a block is refunded like any other', async () => {
  const api = await started({ capacity: 10_000 });
  const admitted = await warm(api);
  const decision = await api.take();
  expect(decision.source).toBe('block');
  expect(await decision.refund()).toMatchObject({ refunded: true });
  expect(await decision.refund()).toMatchObject({ refunded: false });
  await api.close();
  expect(await left(api.name)).toBe(10_000 - admitted);
});

test('a trip is followed: what passes after it was in hand before it', async () => {
  const api = await started({ capacity: 2_000 });
  const bucket = async () => Number(await bench.admin.get(limiterKeys({ name: api.name }).bucket));
  // The bucket's mark moves by what is charged: at this rate by nothing else.
  await limiter(api.name, { draw: 'each' }).take();
  const first = await bucket();
  const passed = await warm(api);
  await setParams(bench.admin, api, { state: 'open', openForMs: 60_000 });
  const held = Math.round((await bucket()) - first) - passed;
  let after = 0;
  let decision = await api.take();
  for (; decision.allowed; decision = await api.take()) after += 1;
  expect(decision.reason).toBe('breaker_open');
  expect(after).toBeLessThanOrEqual(held);
  // Nearly all was left in Redis, for the trip to stop.
  expect(held).toBeLessThan(500);
  for (let i = 0; i < 50; i++) expect((await api.take()).allowed).toBe(false);
});

test('a trip is followed within the block’s life: once that is over, what is left of it admits nobody', async () => {
  let aheadMs = 0;
  const clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + aheadMs,
  };
  const api = await started({ capacity: 2_000 }, { clock });
  await warm(api);
  await setParams(bench.admin, api, { state: 'open', openForMs: 60_000 });
  aheadMs = BLOCK_LIFE_MS;
  expect(await api.take()).toMatchObject({ allowed: false, reason: 'breaker_open' });
});

test('I5: processes killed with a block in hand: the fleet passes no more than the capacity, and loses a block at most', async () => {
  const name = 'killed';
  const capacity = 1_500;
  await setParams(bench.admin, { name }, { rate: NEVER, capacity });
  const script = join(import.meta.dirname, '../support/sdk-block.mjs');
  const fleet = Array.from({ length: 3 }, () => {
    const child = spawn(process.execPath, [script, bench.server.url, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const passed = { child, block: 0, each: 0, denied: 0 };
    child.stdout!.on('data', (bytes: Buffer) => {
      for (const byte of bytes) {
        if (byte === 98) passed.block += 1;
        else if (byte === 101) passed.each += 1;
        else passed.denied += 1;
      }
    });
    return passed;
  });
  await until('each decides from a block', () => fleet.every(({ block }) => block > 20));
  const [victim] = fleet;
  victim!.child.kill('SIGKILL');
  await once(victim!.child.stdout!, 'close');
  const rest = fleet.slice(1);
  await until('the others have used up what is left', () =>
    rest.every(({ denied }) => denied > 20),
  );
  for (const { child } of rest) {
    child.kill('SIGKILL');
    await once(child.stdout!, 'close');
  }
  const passed = fleet.reduce((sum, { block, each }) => sum + block + each, 0);
  expect(passed).toBeLessThanOrEqual(capacity);
  expect(passed).toBeGreaterThanOrEqual(capacity - capacity / 2);
  expect(await left(name)).toBe(0);
});
