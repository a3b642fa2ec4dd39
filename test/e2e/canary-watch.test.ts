/** What becomes of a canary when others write at the same moment, take it off, or start again; its leader by hand, no time passes. Stage: tests. */
import type { Redis } from 'ioredis';
import { beforeEach, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import type { AdoptOutcome, LoadedPolicy } from '../../src/actuate/adopt.js';
import { adoptOrTry } from '../../src/actuate/canary.js';
import { retireCanary } from '../../src/actuate/canary-end.js';
import { makeCanaryLimiter } from '../../src/actuate/canary-limiter.js';
import { stopCanary } from '../../src/actuate/verbs/canary.js';
import { freeze } from '../../src/actuate/verbs/freeze.js';
import { adoptAtStart } from '../../src/daemon/adoption.js';
import { createLog } from '../../src/log.js';
import { parseByPerson } from '../../src/redis/by-person.js';
import { goesOn } from '../../src/redis/canary.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { A, address, at, B, canaryRig, FIRST, FOR_MS, other } from '../support/canary-rig.js';
import { mustRead } from '../support/cli-run.js';
import { adoptBy } from '../support/policies.js';
import { setParams } from '../support/sdk-params.js';

const log = createLog({ level: 'silent' });
const rig = canaryRig();
const { leader, options, tries, canary, newest, says, looksAfter, answers } = rig;
let redis: Redis;
beforeEach(() => {
  ({ redis } = rig.bench());
});
const registered = async () => Object.keys(await redis.hgetall(fleetKeys().limiters));

/** A client on which `then` runs to its end before the first call of `command`, as another process in between. */
function before(command: 'del' | 'hget', then: () => Promise<unknown>): Redis {
  let done: Promise<unknown> | undefined;
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== command) return value.bind(target);
      return async (...args: unknown[]) => {
        done ??= then();
        await done;
        return value.apply(target, args);
      };
    },
  });
}

test('of two that begin at once one stands; what the other left of its limiter proves nothing, and it begins anew', async () => {
  let first: AdoptOutcome | undefined;
  // B has read the limiter before A began, and makes the canary's limiter after it.
  const late = before('del', async () => {
    first = await tries(A);
  });
  const second = await tries(B, late);
  expect(first).toMatchObject({ status: 'canary' });
  expect(second).toMatchObject({ status: 'refused', reply: { reason: 'revision' } });
  const begun = await canary();
  expect(begun.policy).toBe(A.hash);
  expect(await mustRead(redis, other)).toMatchObject({ policyRate: 30 });
  await answers(0, 40);

  // Its time is over, and the numbers are good: but they are those of B.
  expect(await looksAfter(FOR_MS + 1_000)).toBe(true);
  const anew = await canary();
  expect(anew.policy).toBe(A.hash);
  expect(anew.epoch).toBeGreaterThan(begun.epoch);
  expect(await mustRead(redis, other)).toMatchObject({ policyRate: 70, epoch: anew.epoch });
  expect(await newest()).toMatchObject({
    reason: 'canary_begins',
    sentence: expect.stringMatching(
      /^Policy [0-9a-f]{12} of checkout\.ts runs for 50 % .* begins anew: checkout\.canary was changed or lost, and what it has seen proves nothing\.$/,
    ),
  });
  expect((await mustRead(redis, address)).policyHash).toBe(FIRST.hash);
  await answers(0, 40);
  expect(await looksAfter(FOR_MS - 1)).toBe(false);
  expect(await looksAfter(FOR_MS + 1)).toBe(true);
  expect(await mustRead(redis, address)).toMatchObject({ policyHash: A.hash, canary: '' });
});

test.each([
  ['stopped by a person', () => says(stopCanary), FIRST.hash],
  ['replaced by that of another version', () => tries(B), FIRST.hash],
  ['held by a person', () => says(freeze(3_600_000)), FIRST.hash],
])('one that is %s between judgement and adoption is not adopted', async (_, then, stays) => {
  await tries(A);
  await answers(0, 40);
  // The first reading of the adoption.
  const judging = await leader(before('hget', then));
  await looksAfter(FOR_MS + 1_000, judging);
  expect((await mustRead(redis, address)).policyHash).toBe(stays);
  expect((await newest()).reason).not.toBe('canary_passed');
});

test.each([
  ['taken off by who ended another', () => redis.hdel(fleetKeys().limiters, other.name)],
  ['about to be forgotten', () => redis.pexpire(limiterKeys(other).params, 60_000)],
  ['lost', () => redis.del(limiterKeys(other).params)],
])('a limiter that is %s while its canary goes on is made anew', async (_, spoil) => {
  await tries(A);
  const begun = await canary();
  expect(await looksAfter(1_000)).toBe(false);
  await spoil();
  expect(await looksAfter(2_000)).toBe(true);
  expect((await canary()).epoch).toBeGreaterThan(begun.epoch);
  expect(await registered()).toContain(other.name);
  expect(await redis.pttl(limiterKeys(other).params)).toBe(-1);
  expect(await looksAfter(3_000)).toBe(false);
});

test('who ended one leaves that of another alone, if it has begun meanwhile', async () => {
  await tries(A);
  await retireCanary(redis, address);
  expect(await registered()).toContain(other.name);
  await says(stopCanary);
  await retireCanary(redis, address);
  expect(await registered()).toEqual(['checkout']);
});

test('what a writer left that died half-way is taken off after half a minute, at a beginning as at an end', async () => {
  const { nowUs, params } = await readParams(redis, address);
  await makeCanaryLimiter(redis, A, 50, { params: params!, nowUs }, options());
  for (const afterMs of [0, 29_000, 30_000]) {
    expect(await registered()).toContain(other.name);
    rig.clock().advance(30_000);
    expect(await rig.watch.act(params!, nowUs + afterMs * 1000)).toBe(false);
  }
  expect(await registered()).toEqual(['checkout']);
  expect(await redis.pttl(limiterKeys(other).params)).toBeGreaterThan(0);
});

test('a version that is tried again is kept at least as long as its trial', async () => {
  const key = limiterKeys(address).policyVersion(A.hash);
  await redis.set(key, A.json, 'PX', 30_000);
  await tries(A);
  expect(await redis.pttl(key)).toBeGreaterThan(3 * FOR_MS);
  // One that was adopted is kept for good.
  await says(stopCanary);
  await redis.persist(key);
  await adoptOrTry(redis, at(140, { canary: { percent: 10, for: '10m' } }), options());
  await tries(A);
  expect(await redis.pttl(key)).toBe(-1);
});

test('a file that changes again ends it: for another canary, or, where that cannot be, at once for all', async () => {
  const file = (loaded: LoadedPolicy) => adoptOrTry(redis, loaded, options());
  const tried = (rate: number, more = {}) =>
    at(rate, { canary: { percent: 10, for: '10m' }, ...more });
  expect(await file(tried(140))).toMatchObject({ status: 'canary' });
  const { policy } = await canary();
  const next = await file(tried(160));
  const ends = `That ends the canary of policy ${policy.slice(0, 12)}.`;
  expect(next).toMatchObject({ status: 'canary', sentence: expect.stringContaining(ends) });
  expect(await mustRead(redis, other)).toMatchObject({ policyRate: 16 });
  const last = (await canary()).policy;
  await file(tried(160, { mode: 'auto' }));
  expect(await newest()).toMatchObject({
    reason: 'policy_adopted',
    sentence: expect.stringContaining(`That ends the canary of policy ${last.slice(0, 12)}.`),
  });
  expect(await registered()).toEqual(['checkout']);
  expect(await mustRead(redis, address)).toMatchObject({ canary: '', mode: 'auto' });
});

test('in auto it begins at its part of what is in force, within its bounds', async () => {
  const [auto, next] = [100, 140].map((rate) => at(rate, { mode: 'auto' })) as [
    LoadedPolicy,
    LoadedPolicy,
  ];
  await adoptBy(redis, 'person', auto);
  await setParams(redis, address, { rate: 30, inFlightMax: 4 }, 'law');
  await tries(next);
  expect(await mustRead(redis, other)).toMatchObject({ rate: 15, inFlightMax: 2, maxRate: 200 });
});

test('a start ends neither the canary of a person nor that of a daemon that leads; one with nobody left it ends', async () => {
  const starts = () =>
    adoptAtStart(
      { redis, prefix: 'flyball', owner: 'd2', leaseMs: 60_000, nowMs: 0, reload: 'auto', log },
      FIRST,
    );
  await tries(A);
  await starts();
  expect(goesOn(await canary())).toBe(true);
  await redis.del(limiterKeys(address).lease);
  await starts();
  expect(await canary()).toMatchObject({ ended: 'stopped' });
  await tries(A, redis, options('person', 'kim'));
  await starts();
  expect(await canary()).toMatchObject({ by: 'kim' });
  expect(goesOn(await canary())).toBe(true);

  // Once it has passed, the file that it replaced is not adopted again by a start.
  await answers(0, 40);
  rig.watch = await rig.leader();
  expect(await looksAfter(FOR_MS + 1_000)).toBe(true);
  const now = await mustRead(redis, address);
  expect(now.policyHash).toBe(A.hash);
  expect(parseByPerson(now.byPerson).policy).toMatchObject({ over: FIRST.hash, by: 'kim' });
  await redis.del(limiterKeys(address).lease);
  await starts();
  expect((await mustRead(redis, address)).policyHash).toBe(A.hash);
});

test('who leads with a file that says the adopted version does not adopt what files begin elsewhere, and takes it back in the end', async () => {
  await tries(A);
  await answers(0, 40);
  rig.file = 'same';
  expect(await looksAfter(FOR_MS + 1_000)).toBe(false);
  expect(goesOn(await canary())).toBe(true);
  expect(await looksAfter(3 * FOR_MS + 1_000)).toBe(true);
  expect(await canary()).toMatchObject({ ended: 'unproven' });
  expect((await newest()).sentence).toContain('says the adopted version');
  expect((await mustRead(redis, address)).policyHash).toBe(FIRST.hash);
});

test.each(['none', 'pending'] as const)(
  'a canary passes where the file of who leads is %s; a person has said more than any file',
  async (state) => {
    await tries(A);
    await answers(0, 40);
    rig.file = state;
    expect(await looksAfter(FOR_MS + 1_000)).toBe(true);
    expect((await mustRead(redis, address)).policyHash).toBe(A.hash);
    await tries(B, redis, options('person', 'kim'));
    await answers(0, 40);
    rig.file = 'same';
    expect(await looksAfter(FOR_MS + 1_000)).toBe(true);
    expect((await mustRead(redis, address)).policyHash).toBe(B.hash);
  },
);
