/** The person's verbs as pure functions: what each would write, say and refuse. */
import { expect, test } from 'vitest';
import { reset, trip } from '../../src/actuate/verbs/breaker.js';
import { freeze, thaw } from '../../src/actuate/verbs/freeze.js';
import { pin, release } from '../../src/actuate/verbs/pin.js';
import type { Facts, Planner, VerbPlan } from '../../src/actuate/verbs/plan.js';
import { rollback } from '../../src/actuate/verbs/rollback.js';
import type { WishFault } from '../../src/actuate/verbs/wish-fault.js';
import { byFlags, flagOf } from '../../src/cli/flag-names.js';
import { FlyballError } from '../../src/errors.js';
import { type Policy, policySchema } from '../../src/policy/schema.js';
import { effective } from '../../src/redis/effective.js';
import { NOW_MS, params } from '../support/cli-params.js';

const HOUR = 3_600_000;

function facts(change: Parameters<typeof params>[0] = {}, policy: Policy | null = null): Facts {
  return {
    limiter: 'checkout',
    params: params(change),
    nowMs: NOW_MS,
    policy,
    actor: 'ada@host (unverified)',
  };
}

function plan(planner: Planner, given: Facts): VerbPlan {
  const result = planner(given);
  if (result.kind !== 'change') throw new Error(`nothing to do: ${result.sentence}`);
  return result;
}

/** What holds right after the write. */
function then(given: Facts, made: VerbPlan) {
  return effective({ ...given.params, ...made.change }, given.nowMs);
}

test('C91: a rollback brings the old numbers back, holds them, and says who and until when in one sentence', () => {
  const given = facts({ rate: 64, inFlightMax: 12 });
  const target = {
    epoch: 1,
    revision: 5,
    after: { mode: 'auto', state: 'closed', rate: 80, capacity: 200, inFlightMax: 20 },
  } as const;
  const made = plan(rollback(target, HOUR), given);
  expect(made.change).toMatchObject({
    rate: 80,
    capacity: 200,
    inFlightMax: 20,
    pinnedUntil: NOW_MS + HOUR,
    heldBy: 'ada@host (unverified)',
  });
  expect(made.change.mode).toBeUndefined();
  expect(made.reason).toBe('rollback');
  expect(made.detail).toEqual({ toRevision: 5, toEpoch: 1, until: NOW_MS + HOUR });
  expect(made.sentence).toBe(
    `ada@host (unverified) rolled checkout back to revision 5: rate 64 → 80/s, in-flight cap 12 → 20; held until ${new Date(NOW_MS + HOUR).toISOString().replace('.000Z', 'Z')}.`,
  );
});

test('a rollback outside the bounds of today is clamped and says so; mode and breaker stay', () => {
  const given = facts({ state: 'open', openUntil: -1, maxRate: 70, mode: 'auto' });
  const after = {
    mode: 'recommend',
    state: 'closed',
    rate: 500,
    capacity: 999,
    inFlightMax: 999,
  } as const;
  const made = plan(rollback({ epoch: 1, revision: 2, after }, 'until-ended'), given);
  expect(made.after).toEqual({
    mode: 'auto',
    state: 'open',
    rate: 70,
    capacity: 200,
    inFlightMax: 64,
  });
  expect(made.change.pinnedUntil).toBe(-1);
  expect(made.notes.join(' ')).toMatch(/rate was 500; the bounds of today are 20 … 70/);
  expect(made.notes.join(' ')).toMatch(/mode stays auto \(it was recommend then\)/);
  expect(made.notes.join(' ')).toMatch(/breaker stays open/);
  expect(then(given, made).rate).toBe(0);
});

test('a pin reaches from 0 to the maximum, and a rate below the lowest one begins with empty buckets', () => {
  expect(plan(pin({ rate: 400 }, HOUR), facts()).refloor).toBeUndefined();
  const zero = plan(pin({ rate: 0 }, HOUR), facts());
  expect(zero.change).toMatchObject({ rate: 0, pinnedUntil: NOW_MS + HOUR });
  expect(zero.refloor).toBe('empty');
  expect(zero.notes.join(' ')).toMatch(/admits nothing until released/);
});

test.each([
  [{ rate: 401 }, /^rate is 401; a pin may be 0 … 400/],
  [{ rate: Number.NaN }, /^rate is NaN/],
  [
    { inFlight: 0 },
    /^inFlight is 0; a pin may be a whole number 1 … 64.*: rate 0, or flyball trip/,
  ],
  [{ inFlight: 65 }, /1 … 64/],
  [{}, /give rate, inFlight or both.*flyball freeze checkout/],
])('a pin of %j is refused with what is allowed', (wanted, message) => {
  expect(() => pin(wanted, HOUR)(facts())).toThrow(message);
});

test('what a verb refuses is told by fields, and on the command line by flags; other errors are as they are', () => {
  const refusal = (make: () => unknown) => {
    try {
      return make();
    } catch (error) {
      return error;
    }
  };
  const wrong = refusal(() => pin({ inFlight: 0 }, HOUR)(facts())) as WishFault;
  expect(wrong.fields).toEqual(['inFlight', 'rate']);
  const told = byFlags(wrong) as FlyballError;
  expect(told.message).toMatch(/^--in-flight is 0; .* To admit nothing: --rate 0, or flyball trip/);
  expect(told.code).toBe(wrong.code);
  const names = ['rateMin', 'inFlightMax', 'percent', 'subjects', 'toMs', 'anyway', 'clear'];
  expect(names.map(flagOf)).toEqual([
    ...['--rate-min', '--in-flight-max', '--percent', '--subject', '--before', '--anyway'],
    '--clear',
  ]);
  const other = new FlyballError('FLYBALL_E_ACTUATE_REFUSED', 'rate');
  expect(byFlags(other)).toBe(other);
});

test('a pin of the cap where there is no cap names the policy field', () => {
  const given = facts({ inFlightMax: 0, minInFlight: 0, maxInFlight: 0 });
  expect(() => pin({ inFlight: 5 }, HOUR)(given)).toThrow(/no in-flight cap.*limiter\.inFlightMax/);
});

test('capacity follows a pinned rate only where the policy bounds it', () => {
  expect(plan(pin({ rate: 50 }, HOUR), facts()).after.capacity).toBe(200);
  const bounded = facts({ minCapacity: 20, maxCapacity: 800 });
  expect(plan(pin({ rate: 50 }, HOUR), bounded).after.capacity).toBe(100);
});

test('release in auto goes on from the held value, within the bounds; nothing else moves', () => {
  const given = facts({ rate: 70, pinnedUntil: -1, heldBy: 'bob@x (unverified)', holdBreaker: 1 });
  const made = plan(release(), given);
  expect(made.change).toMatchObject({ rate: 70, pinnedUntil: 0, heldBy: '', holdBreaker: 0 });
  expect(plan(release(), facts({ rate: 0, pinnedUntil: -1 })).change.rate).toBe(20);
});

test("release in recommend brings the policy's own numbers back", () => {
  const policy = policySchema.parse({
    limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 24 },
  });
  const given = facts({ mode: 'recommend', rate: 33, inFlightMax: 4, pinnedUntil: -1 }, policy);
  expect(plan(release(), given).after).toMatchObject({ rate: 100, inFlightMax: 24 });
});

test('release of nothing, thaw of nothing and reset of nothing write nothing and say what is there instead', () => {
  expect(release()(facts({ frozenUntil: -1 }))).toMatchObject({
    kind: 'nothing',
    sentence: expect.stringMatching(/not pinned\. It is frozen: `flyball thaw checkout`/),
  });
  expect(thaw()(facts({ pinnedUntil: -1 }))).toMatchObject({
    kind: 'nothing',
    sentence: expect.stringMatching(/not frozen\. It is pinned/),
  });
  expect(reset()(facts())).toMatchObject({
    kind: 'nothing',
    sentence: expect.stringMatching(/no trip to end/),
  });
});

test('a release keeps the freeze, a thaw keeps the pin, and the hold keeps its owner', () => {
  const both = facts({
    pinnedUntil: -1,
    frozenUntil: -1,
    heldBy: 'bob@x (unverified)',
    holdBreaker: 1,
  });
  for (const made of [plan(release(), both), plan(thaw(), both)]) {
    expect(made.change.heldBy).toBeUndefined();
    expect(made.change.holdBreaker).toBeUndefined();
  }
  expect(plan(release(), both).change.frozenUntil).toBeUndefined();
  expect(plan(thaw(), both).change.pinnedUntil).toBeUndefined();
});

test('a freeze during a glide holds the value that the glide has reached', () => {
  // Half-way: 60 s hold and 15 of 30 s glide after the last heartbeat.
  const given = facts({
    rate: 300,
    inFlightMax: 40,
    safeRate: 100,
    safeInFlight: 20,
    validUntil: NOW_MS - 75_000,
  });
  expect(effective(given.params, NOW_MS)).toMatchObject({
    gliding: true,
    rate: 200,
    inFlightMax: 30,
  });
  const made = plan(freeze(HOUR), given);
  expect(made.after).toMatchObject({ rate: 200, inFlightMax: 30 });
  expect(then(given, made)).toMatchObject({ gliding: false, rate: 200, inFlightMax: 30 });
});

test('a trip opens for the policy, for a time, or until reset; the stored rate stays and the generation grows', () => {
  const policy = policySchema.parse({
    limiter: { name: 'checkout', rate: 100, capacity: 200 },
    signals: { up: { source: 'telemetry', stat: 'errorRatio' } },
    breaker: { on: 'up', above: 0.5, openFor: '7s' },
  });
  const byPolicy = plan(trip(), facts({ generation: 4 }, policy));
  expect(byPolicy.change).toMatchObject({
    state: 'open',
    openUntil: NOW_MS + 7000,
    openForMs: 7000,
    generation: 5,
  });
  expect(byPolicy.change.rate).toBeUndefined();
  expect(plan(trip(60_000), facts({}, policy)).change.openUntil).toBe(NOW_MS + 60_000);
  const held = plan(trip('until-ended'), facts({}, policy));
  expect(held.change.openUntil).toBe(-1);
  expect(held.sentence).toMatch(/rate 0 until a person resets it/);
  expect(then(facts(), held)).toMatchObject({ state: 'open', rate: 0 });
});

test('a trip without a time never takes over that of the trip before it', () => {
  const long = { openForMs: 365 * 24 * HOUR };
  expect(plan(trip(), facts(long)).change).toMatchObject({
    openUntil: NOW_MS + 5000,
    openForMs: 5000,
  });
});

test('a trip out of a slow start says which rate comes back when no autopilot remembers the last good one', () => {
  const ramp = { state: 'recovering', rate: 25, mode: 'recommend' } as const;
  expect(plan(trip(), facts(ramp)).notes.join()).toContain(
    'still recovering: 25/s is what comes back',
  );
  for (const other of [
    { rate: 25 },
    { ...ramp, pinnedUntil: -1 },
    { ...ramp, mode: 'auto' as const },
  ]) {
    expect(plan(trip(), facts(other)).notes.join()).not.toContain('still recovering');
  }
});

test('reset recovers under a living autopilot, closes at a held value, and closes when nobody would grow it', () => {
  const open = { state: 'open', openUntil: -1, rate: 120, inFlightMax: 30 } as const;
  const alive = facts({ ...open, validUntil: NOW_MS + 5000 });
  expect(plan(reset(), alive).after).toMatchObject({
    state: 'recovering',
    rate: 60,
    inFlightMax: 15,
  });
  const pinned = facts({ ...open, validUntil: NOW_MS + 5000, pinnedUntil: -1 });
  expect(plan(reset(), pinned).after).toMatchObject({ state: 'closed', rate: 120 });
  const dead = facts({ ...open, validUntil: NOW_MS - 5000 });
  expect(plan(reset(), dead).after).toMatchObject({ state: 'closed', rate: 120 });
  const recommend = facts({ ...open, mode: 'recommend', validUntil: NOW_MS + 5000 });
  expect(plan(reset(), recommend).after).toMatchObject({ state: 'closed', rate: 120 });
});

test('every verb writes the state of this moment: an open time that ran out does not begin again', () => {
  const elapsed = facts({ state: 'open', openUntil: NOW_MS - 1000, openForMs: 5000 });
  expect(effective(elapsed.params, NOW_MS).state).toBe('half-open');
  for (const planner of [pin({ rate: 50 }, HOUR), freeze(HOUR)]) {
    expect(plan(planner, elapsed).change.state).toBe('half-open');
  }
});
