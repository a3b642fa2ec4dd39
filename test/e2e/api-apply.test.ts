/** A policy that waits for a person, adopted over HTTP: what was shown or nothing, by the function that `flyball apply` calls. */
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import type { LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { readPolicy } from '../../src/actuate/verbs/apply.js';
import type { PolicyFault } from '../../src/errors.js';
import { jsonOf, startApi, type TestApi } from '../support/api.js';
import { mustRead } from '../support/cli-run.js';
import { adoptBy, loadedPolicy } from '../support/policies.js';
import { redisBench } from '../support/redis-bench.js';

const CHECKOUT = { name: 'checkout' };
let redis: Redis;
let api: TestApi;
/** The files of the daemon. */
let loaded: LoadedPolicy[];
let faults: PolicyFault[];

redisBench(async (bench) => {
  ({ redis } = bench);
  await adoptBy(redis, 'autopilot', loadedPolicy());
  loaded = [file({ capacity: 300 })];
  faults = [];
  api = await startApi(redis, { policies: () => ({ loaded, faults }) });
});
afterEach(() => api.close());

function file(limiter: { capacity?: number; rate?: number; group?: string }, mode?: 'auto') {
  const numbers = { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 24, ...limiter };
  const reload = 'apply' as const;
  return loadedPolicy({ limiter: numbers, reload, ...(mode !== undefined && { mode }) });
}

async function apply(body: object, name = 'checkout', role: 'admin' | 'operator' = 'admin') {
  const reply = await api.ask(role, 'POST', `/policies/${name}/apply`, { body });
  return { status: reply.status, json: await jsonOf(reply) };
}

async function basis(body: object = {}): Promise<string> {
  const { status, json } = await apply({ ...body, dryRun: true });
  expect([status, json.status]).toEqual([200, 'dry_run']);
  return json.basis;
}

test('shown, then done: the entry says who and why, and nothing is left to do', async () => {
  const { json: dry } = await apply({ dryRun: true });
  expect(dry).toMatchObject({
    ...{ status: 'dry_run', result: null, revision: 1 },
    plan: {
      action: 'change',
      numbers: expect.arrayContaining([
        expect.objectContaining({ name: 'capacity', inForce: 200, planned: 300 }),
      ]),
    },
  });
  expect((await mustRead(redis, CHECKOUT)).revision).toBe(1);
  const { status, json } = await apply({ basis: dry.basis, reason: 'a sale on Friday' });
  expect([status, json]).toMatchObject([200, { status: 'done', result: 'changed', revision: 2 }]);
  expect(await mustRead(redis, CHECKOUT)).toMatchObject({ revision: 2, capacity: 300 });
  expect((await readPolicy(redis, CHECKOUT))?.reload).toBe('apply');
  const { entries } = await readEntries(redis, CHECKOUT, { limit: 1 });
  expect(entries[0]!.body).toMatchObject({
    actor: { kind: 'person', name: 'the-admin', verified: true },
    reason: 'policy_adopted',
    detail: { why: 'a sale on Friday', file: 'checkout.ts' },
  });
  expect((await apply({ basis: dry.basis })).json).toMatchObject({ status: 'nothing' });
  expect((await apply({ dryRun: true })).json).toMatchObject({ status: 'nothing', basis: null });
});

describe('compare and set', () => {
  test('what a person did meanwhile, or another text of the file: nothing is written', async () => {
    const seen = await basis();
    const pin = { rate: 90, revision: 1 };
    const pinned = await api.ask('operator', 'POST', '/limiters/checkout/pin', { body: pin });
    expect(pinned.status).toBe(200);
    const held = await apply({ basis: seen });
    expect([held.status, held.json]).toMatchObject([
      409,
      { code: 'FLYBALL_E_API_CHANGED', current: { revision: 2 } },
    ]);
    const again = await basis();
    loaded = [file({ capacity: 301 })];
    expect((await apply({ basis: again })).status).toBe(409);
    expect((await mustRead(redis, CHECKOUT)).revision).toBe(2);
  });

  test('what the law moves does not keep a person from it', async () => {
    await adoptBy(redis, 'person', file({}, 'auto'));
    loaded = [file({ capacity: 300 }, 'auto')];
    const seen = await basis();
    const { revision } = await mustRead(redis, CHECKOUT);
    await redis.hset('flyball:{checkout}:params', { revision: revision + 1, rate: 70 });
    expect((await apply({ basis: seen })).json).toMatchObject({ status: 'done' });
  });

  test('a script gives revision and hash: any other of either is refused', async () => {
    const { hash } = loaded[0]!;
    const seen = { revision: 1, desired: hash };
    for (const other of [
      { ...seen, revision: 2 },
      { ...seen, epoch: 1 },
      { ...seen, desired: 'a'.repeat(64) },
    ]) {
      expect([other, (await apply(other)).status]).toEqual([other, 409]);
    }
    for (const lacking of [{}, { revision: 1 }, { desired: hash }, { reason: 'so' }]) {
      const { status, json } = await apply(lacking);
      expect([lacking, status, json.faults[0].field]).toEqual([lacking, 400, 'basis']);
    }
    expect((await mustRead(redis, CHECKOUT)).revision).toBe(1);
    expect((await apply(seen)).json).toMatchObject({ status: 'done', revision: 2 });
  });

  test('two at once: one adopts it, and the other finds it done or moved', async () => {
    const seen = await basis();
    const both = await Promise.all([apply({ basis: seen }), apply({ basis: seen })]);
    expect(both.filter(({ json }) => json.status === 'done')).toHaveLength(1);
    expect((await mustRead(redis, CHECKOUT)).revision).toBe(2);
  });
});

test('a part of the subjects first: the wish is a part of what was shown', async () => {
  loaded = [file({ rate: 150 })];
  const wish = { canaryPercent: 5, forMs: 60_000 };
  const seen = await basis(wish);
  expect((await apply({ basis: seen })).status).toBe(409);
  const { status, json } = await apply({ ...wish, basis: seen });
  expect([status, json]).toMatchObject([200, { status: 'done', result: 'canary' }]);
  expect((await mustRead(redis, CHECKOUT)).policyHash).not.toBe(loaded[0]!.hash);
  for (const wrong of [
    { forMs: 60_000 },
    { canaryPercent: 0 },
    { canaryPercent: 60 },
    { canaryPercent: 5, forMs: 10 },
  ]) {
    expect([wrong, (await apply({ ...wrong, dryRun: true })).status]).toEqual([wrong, 400]);
  }
});

test('a limiter that is new here is created; one of another group is refused', async () => {
  const fresh = { name: 'fresh', rate: 10, capacity: 10 };
  loaded.push(loadedPolicy({ limiter: fresh, bounds: { rate: { min: 1, max: 20 } } }, 'fresh.ts'));
  const { json: dry } = await apply({ dryRun: true }, 'fresh');
  expect(dry).toMatchObject({ plan: { action: 'create' }, revision: null });
  const { json } = await apply({ basis: dry.basis }, 'fresh');
  expect(json).toMatchObject({ status: 'done', result: 'created', revision: 1 });
  loaded = [file({ group: 'other' })];
  const { status, json: no } = await apply({ dryRun: true });
  expect([status, no.code]).toEqual([422, 'FLYBALL_E_ACTUATE_REFUSED']);
  expect(no.detail).toContain('limiter.group is group other');
});

test('no file, or one that does not load: nothing is adopted, and the answer says where it lies', async () => {
  faults = [
    { file: 'checkout.ts', field: 'bounds.rate.max', message: 'is below min' },
  ] as unknown as PolicyFault[];
  const broken = await apply({ dryRun: true });
  expect([broken.status, broken.json]).toMatchObject([
    422,
    { code: 'FLYBALL_E_API_NO_FILE', faults: [{ field: 'bounds.rate.max' }] },
  ]);
  const none = await apply({ dryRun: true }, 'search');
  expect([none.status, none.json.code]).toEqual([404, 'FLYBALL_E_API_NO_FILE']);
  expect(none.json.detail).toContain('Some do not load: checkout.ts');
  const odd = await apply({ dryRun: true }, encodeURIComponent('../<script>'));
  expect(odd.status).toBe(404);
});

test('an operator may not', async () => {
  const { status, json } = await apply({ dryRun: true }, 'checkout', 'operator');
  expect([status, json.code]).toEqual([403, 'FLYBALL_E_API_ROLE']);
});
