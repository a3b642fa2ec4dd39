/** What adopting would change: fields, who owns each number, drift, warnings; and what makes a plan stale. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { adoptAll } from '../../src/actuate/verbs/adopt-all.js';
import { stoodOf } from '../../src/actuate/verbs/stood.js';
import { policyDiff } from '../../src/policy/plan.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { actuateScript } from '../../src/redis/scripts.gen.js';
import { lease } from '../../src/redis/scripts.js';
import { planView } from '../../src/view/plan.js';
import { cli, lawWrite, mustRead } from '../support/cli-run.js';
import { adoptBy, loadedPolicy } from '../support/policies.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
const KIM = 'kim@host (unverified)';
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

const run = (args: string) => cli(args.split(' '), { env: { FLYBALL_REDIS_URL: server.url } });
const plan = async (...loaded: LoadedPolicy[]) => {
  const view = await planView({ redis, url: server.url, prefix: undefined }, loaded, KIM, true);
  return { ...view, checkout: view.limiters.find(({ limiter }) => limiter === 'checkout')! };
};
const apply = (
  loaded: LoadedPolicy,
  stood: Awaited<ReturnType<typeof stands>> | null,
  client = redis,
) =>
  adoptAll(client, [{ loaded, stood }], {
    ...{ actor: { kind: 'person', name: KIM }, why: 'sale', nowMs: Date.now },
  });
const stands = async () => stoodOf(await mustRead(redis, checkout), Date.now());

async function leader() {
  const reply = await lease(redis, { keys, op: 'acquire', owner: 'd1', leaseMs: 60_000 });
  if (reply.status !== 'held') throw new Error('no lease');
  return { kind: 'lease', owner: 'd1', token: reply.token } as const;
}
const AUTO = { mode: 'auto', control: { law: 'aimd' } } as const;

test('a policy is compared field by field; what comes or goes whole is told by its parts', () => {
  const { policy: before } = loadedPolicy({ owner: 'pay' });
  const { policy: after } = loadedPolicy({
    limiter: { name: 'checkout', rate: 100, capacity: 200, routes: ['GET /a'] },
    guards: { cooldown: 5000 },
  });
  expect(policyDiff(before, after)).toEqual([
    { field: 'limiter.routes', kind: 'change', before: [], after: ['GET /a'] },
    { field: 'limiter.inFlightMax', kind: 'remove', before: 24, after: null },
    { field: 'guards.cooldown', kind: 'change', before: 2000, after: 5000 },
    { field: 'owner', kind: 'remove', before: 'pay', after: null },
  ]);
  const profiles = { night: { times: 0.5 } };
  expect(policyDiff(before, { ...before, profiles })).toEqual([
    { field: 'profiles.night.times', kind: 'add', before: null, after: 0.5 },
  ]);
  expect(policyDiff(before, before)).toEqual([]);
});

test('who owns a number: policy, law, tuning, window, person; each is named', async () => {
  await adoptBy(redis, 'autopilot', loadedPolicy(AUTO));
  const owners = async () => {
    const { mode, numbers, drift } = (await plan(loadedPolicy(AUTO))).checkout;
    expect(drift).toEqual([]);
    return [mode, ...numbers].map((each) => [each!.owner, each!.by]);
  };
  const policys = ['policy', null];
  expect(await owners()).toEqual([policys, policys, policys, policys]);
  await lawWrite(redis, checkout, await leader(), { rate: 380 });
  expect(await owners()).toEqual([policys, ['law', null], policys, policys]);
  await run('pin checkout --rate 50 --hold --yes');
  const [, rate] = await owners();
  expect(rate).toEqual(['person', expect.stringMatching(/@/)]);
  await run('release checkout --yes');
  expect((await owners())[1]).toEqual(['law', null]);
});

test('a profile of the schedule owns what it gives, and a scheduled freeze is the schedule’s', async () => {
  const night = {
    profiles: { night: { times: 0.5 } },
    schedule: [{ profile: 'night', from: '2020-01-01T00:00', to: '2099-01-01T00:00' }],
  };
  await adoptBy(redis, 'autopilot', loadedPolicy(night));
  const { numbers, drift } = (await plan(loadedPolicy(night))).checkout;
  expect(drift).toEqual([]);
  expect(numbers[0]).toMatchObject({ inForce: 50, owner: 'window', by: 'night' });
});

test('drift is what nobody owns; adopting once more puts it right, in one revision', async () => {
  const loaded = loadedPolicy();
  await adoptBy(redis, 'autopilot', loaded);
  await redis.hset(keys.params, { maxRate: '999', rate: '77', mode: 'auto', terms: 'x' });
  const { checkout: found, counts } = await plan(loaded);
  expect(found.action).toBe('mend');
  expect(counts).toMatchObject({ mend: 1, unchanged: 0 });
  expect(found.drift).toEqual([
    { field: 'mode', inForce: 'auto', adopted: 'recommend' },
    { field: 'rate', inForce: 77, adopted: 100 },
    { field: 'maxRate', inForce: 999, adopted: 400 },
    { field: 'terms', inForce: 'x', adopted: '' },
  ]);
  const options = { actor: { kind: 'person', name: KIM }, nowMs: Date.now } as const;
  const [done] = await adoptAll(redis, [{ loaded, stood: found.stood, mends: true }], options);
  expect(done).toMatchObject({ status: 'changed', revision: 2 });
  expect(await mustRead(redis, checkout)).toMatchObject({
    ...{ maxRate: 400, rate: 100, mode: 'recommend', terms: '', revision: 2 },
  });
  expect((await plan(loaded)).checkout.action).toBe('unchanged');
});

test('what moves at once, begins anew or goes away is warned of', async () => {
  await adoptBy(redis, 'autopilot', loadedPolicy({ ...AUTO, breaker: BREAKER, signals: ERRORS }));
  await lawWrite(redis, checkout, await leader(), { rate: 380 });
  const bounds = { rate: { min: 20, max: 300 }, inFlight: { min: 2, max: 20 } };
  const limiter = { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20 };
  const { warnings } = (await plan(loadedPolicy({ ...AUTO, bounds, limiter }))).checkout;
  expect(warnings).toEqual([
    'bounds.rate.max 300 lies below the 380/s in force: it is lowered at once.',
    'bounds.inFlight.max 20 lies below the cap of 24 in force: it is lowered at once.',
    'the breaker goes away: nothing trips by itself any more.',
  ]);
  const shadow = (await plan(loadedPolicy({ mode: 'shadow' }))).checkout.warnings;
  expect(shadow).toContain('mode auto → shadow: nothing is denied any more.');
});
const ERRORS = { errors: { source: 'telemetry', stat: 'errorRatio' } } as const;
const BREAKER = { on: 'errors', above: 0.5, per: 10_000, openFor: 5000, probeRate: 1 } as const;

test('limiters of one downstream are added up, those without a file too', async () => {
  const of = (name: string, rate: number) =>
    loadedPolicy({
      limiter: { name, rate, capacity: 10, downstream: { name: 'db', capacity: 200 } },
      bounds: { rate: { min: 1, max: rate } },
    });
  await adoptBy(redis, 'autopilot', of('search', 100));
  const { warnings, counts } = await plan(of('checkout', 100));
  expect(counts).toMatchObject({ create: 1, orphan: 1 });
  expect(warnings.join(' ')).toMatch(/downstream db: .*checkout 100, search 100.* above the 160/);
});

test('what the law moves by the second is no move; what people and policies do is', async () => {
  await adoptBy(redis, 'autopilot', loadedPolicy(AUTO));
  const stood = await stands();
  const desired = loadedPolicy({ ...AUTO, owner: 'pay' });
  const authority = await leader();
  for (const rate of [110, 120]) await lawWrite(redis, checkout, authority, { rate });
  for (const [verb, back, says] of [
    ['pin checkout --rate 50 --hold --yes', 'release checkout --yes', /hold none → pinned by/],
    ['freeze checkout --hold --yes', 'thaw checkout --yes', /hold none → frozen by/],
    ['rollout checkout --percent 5 --yes', 'rollout checkout --done --yes', /rollout all → /],
  ] as const) {
    await run(verb);
    expect(await apply(desired, stood)).toMatchObject([
      { status: 'moved', sentence: expect.stringMatching(says) },
    ]);
    await run(back);
  }
  const before = (await mustRead(redis, checkout)).revision;
  expect(await apply(desired, stood)).toMatchObject([{ status: 'changed', revision: before + 1 }]);
  const { entries } = await readEntries(redis, checkout, { limit: 1 });
  expect(entries[0]!.body).toMatchObject({ reason: 'policy_adopted', detail: { why: 'sale' } });
  // The same once more: nothing is left to do, whatever has moved.
  expect(await apply(desired, stood)).toMatchObject([{ status: 'unchanged' }]);
  expect(await apply(loadedPolicy(AUTO), stood)).toMatchObject([
    { status: 'moved', sentence: expect.stringMatching(/adopted policy .* → /) },
  ]);
});

test('where no law moves the numbers, numbers that moved are a move; params that came or went are one', async () => {
  const desired = loadedPolicy({ owner: 'pay' });
  expect((await apply(loadedPolicy(), null))[0]).toMatchObject({ status: 'created', revision: 1 });
  expect(await apply(desired, null)).toMatchObject([{ status: 'moved' }]);
  const stood = await stands();
  await redis.hset(keys.params, 'rate', '80');
  expect(await apply(desired, stood)).toMatchObject([
    { status: 'moved', sentence: expect.stringMatching(/rate 100 → 80\/s/) },
  ]);
  await redis.del(keys.params);
  expect(await apply(desired, stood)).toMatchObject([
    { status: 'moved', sentence: expect.stringMatching(/params are gone/) },
  ]);
});

test('while the law writes before each of its writes, a person adopts all the same', async () => {
  await adoptBy(redis, 'autopilot', loadedPolicy(AUTO));
  const stood = await stands();
  const authority = await leader();
  const person = server.client();
  const sends = person.sendCommand.bind(person);
  let raced = 0;
  const race = async () => {
    raced += 1;
    const written = await lawWrite(redis, checkout, authority, { rate: 100 + raced });
    expect(written.status).toBe('ok');
  };
  person.sendCommand = (...sent: Parameters<typeof sends>) => {
    const writes = sent[0].name === 'evalsha' && sent[0].args[0] === actuateScript.sha;
    return writes && raced < 3 ? race().then(() => sends(...sent)) : sends(...sent);
  };
  const result = await apply(loadedPolicy({ ...AUTO, owner: 'pay' }), stood, person);
  expect(result).toMatchObject([{ status: 'changed' }]);
  expect(raced).toBe(3);
});
