/** A canary in running services: whom its limiter decides for, from take to done, and that all fall back with every daemon dead. Stage: tests. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { compileCanary } from '../../src/enforce/canary-reach.js';
import { canaryText } from '../../src/redis/canary.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type NamedBench, namedBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const address = { name: 'checkout' };
const other = { name: 'checkout.canary' };
const VERSION = 'ab'.repeat(32);
let admin: Redis;
let limiter: NamedBench['limiter'];

namedBench(address.name, (bench) => {
  ({ admin, limiter } = bench);
});

/** Almost no rate: buckets hold what they are given. */
const STILL = { mode: 'recommend', rate: 0.001, inFlightMax: 0 } as const;
const users = Array.from({ length: 300 }, (_, i) => `user:${i}`);

async function redisMs(): Promise<number> {
  const [s, us] = await admin.time();
  return Number(s) * 1000 + Math.floor(Number(us) / 1000);
}

function text(percent: number, untilMs: number, more: { ended?: 'failed' } = {}): string {
  const times = { since: 0, forMs: 600_000, until: untilMs };
  return canaryText({ policy: VERSION, limiter: other.name, percent, ...times, ...more });
}

async function begins(percent: number, lastsMs = 600_000): Promise<string> {
  const canary = text(percent, (await redisMs()) + lastsMs);
  await setParams(admin, other, { ...STILL, capacity: 7_000 });
  await setParams(admin, address, { ...STILL, capacity: 1_000, canary });
  return canary;
}

/** What is left tells who decided. */
const byCanary = ({ remaining }: { remaining: number }) => remaining > 1_000;

test('its part of the subjects is decided for by its limiter, the others by the limiter itself; each subject stays', async () => {
  const canary = compileCanary(await begins(20))!;
  const api = limiter();
  await api.ready();
  const first = await Promise.all(users.map((user) => api.take(user)));
  expect(first.map(byCanary)).toEqual(users.map((user) => canary.reaches(user)));
  const share = first.filter(byCanary).length / users.length;
  expect(share).toBeGreaterThan(0.1);
  expect(share).toBeLessThan(0.3);
  const again = await api.takeMany(users.map((subject) => ({ subject })));
  expect(again.map(byCanary)).toEqual(first.map(byCanary));
  expect(api.stats().admitted).toBe(2 * users.length);
  // Peek, wait, refund, by the decision and by its id from another process.
  const user = users.find((one) => canary.reaches(one))!;
  expect(byCanary(await api.peek(user))).toBe(true);
  expect(byCanary(await api.wait(user))).toBe(true);
  const decision = await api.take(user);
  const before = (await api.peek(user)).remaining;
  expect(await limiter().refund(decision.id!)).toEqual({ refunded: true });
  expect((await api.peek(user)).remaining).toBe(before + 1);
});

test('without a subject it is a share of the requests; outcomes are counted where it was decided', async () => {
  await begins(50);
  const api = limiter();
  await api.ready();
  let tried = 0;
  for (let i = 0; i < 200; i++) {
    await api.run(undefined, (decision) => {
      if (byCanary(decision)) tried += 1;
    });
  }
  expect(tried).toBeGreaterThan(60);
  expect(tried).toBeLessThan(140);
  await api.close();
  const answers = async (name: string) => {
    const seconds = await admin.keys(limiterKeys({ name }).telemetry(0).replace(/0$/, '*'));
    let ok = 0;
    for (const key of seconds) ok += Number((await admin.hget(key, 'ok')) ?? 0);
    return ok;
  };
  expect(await answers(other.name)).toBe(tried);
  expect(await answers(address.name)).toBe(200 - tried);
});

test('it begins and ends in a running service within seconds', async () => {
  await setParams(admin, address, { ...STILL, capacity: 1_000 });
  const api = limiter();
  await api.ready();
  expect(byCanary(await api.take('user:1'))).toBe(false);
  const canary = await begins(50);
  const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
  await until('the canary decides', async () => byCanary(await api.take(user)));
  const ended = JSON.stringify({ ...JSON.parse(canary), ended: 'failed' });
  await setParams(admin, address, { canary: ended });
  await until('the limiter decides', async () => !byCanary(await api.take(user)));
});

test('with every daemon dead and its end over, all fall back to the limiter, though the params still name it', async () => {
  const canary = await begins(50, 1_500);
  const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
  const api = limiter();
  await api.ready();
  await until('its end', async () => !byCanary(await api.take(user)));
  expect(await admin.hget(limiterKeys(address).params, 'canary')).toBe(canary);
  // A service that starts later asks the limiter itself.
  const late = limiter();
  await late.ready();
  expect(byCanary(await late.take(user))).toBe(false);
});
