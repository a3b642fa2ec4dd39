/** The token clock in Redis against the model, under any changes of numbers, trips, holds, glides and clock steps. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TakeAnswer, TakeReason, TakeReply } from '../../src/redis/calls.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { heartbeat, lease, take } from '../../src/redis/scripts.js';
import {
  ClockModel,
  type ModelAnswer,
  type ModelChange,
  type ModelParams,
} from '../lua/clock-model.js';
import { T0, useRedis } from '../lua/fixture.js';
import { changeParams, SEED, seedParams, storedParams } from '../support/seed-params.js';

const FALLBACK = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
const LEASE_MS = 3_000;

const fixture = useRedis();

type Op =
  | { op: 'change'; change: ModelChange; cause: 'person' | 'law' }
  | { op: 'wait'; us: number }
  | { op: 'expire' }
  | { op: 'beat' }
  | { op: 'hold'; field: 'pinnedUntil' | 'frozenUntil'; forMs: number | null; rate: number }
  | { op: 'release' }
  | { op: 'take'; subject: string | null; cost: number };

const rate = fc.oneof(
  fc.integer({ min: 1, max: 500 }),
  fc.constantFrom(0.1, 0.25, 1.5, 33.3),
  fc.integer({ min: 1, max: 9_999 }).map((n) => n / 100),
);
const capacity = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.constantFrom(1.5, 20, 100, 200));
const cost = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(1, 2, 0.5) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3_000_000 }).map((n) => n / 1_000_000) },
);
const subject = fc.constantFrom(null, 'a', 'b');

const anyTake: fc.Arbitrary<Op> = fc.record({ op: fc.constant('take' as const), subject, cost });
const forward: fc.Arbitrary<Op> = fc.record({
  op: fc.constant('wait' as const),
  us: fc.oneof(
    fc.integer({ min: 0, max: 5_000_000 }),
    fc.integer({ min: 0, max: 200_000_000 }),
    fc.constantFrom(1, 999, 1_000, 60_000_000),
  ),
});
const step: fc.Arbitrary<Op> = fc.record({
  op: fc.constant('wait' as const),
  us: fc.oneof(
    fc.integer({ min: -5_000_000, max: 0 }),
    fc.constantFrom(-82_800_000_000, -60_000_000, -1, 3_600_000_000),
  ),
});
const person = fc.constant('person' as const);
const write: fc.Arbitrary<Op> = fc.oneof(
  fc.record({ op: fc.constant('change' as const), change: fc.record({ rate }), cause: person }),
  fc.record({ op: fc.constant('change' as const), change: fc.record({ capacity }), cause: person }),
  fc.record({
    op: fc.constant('change' as const),
    change: fc.record({ rate: fc.oneof(rate, fc.constant(0)), capacity }),
    cause: person,
  }),
  fc.record({
    op: fc.constant('change' as const),
    change: fc.record({
      state: fc.constant('open' as const),
      openForMs: fc.integer({ min: 1, max: 20_000 }),
    }),
    cause: person,
  }),
  fc.record({
    op: fc.constant('change' as const),
    change: fc.record({ state: fc.constant('open' as const), openUntil: fc.constant(-1) }),
    cause: person,
  }),
  fc.record({
    op: fc.constant('change' as const),
    change: fc.record({
      state: fc.constantFrom('closed' as const, 'half-open' as const, 'recovering' as const),
    }),
    cause: person,
  }),
  fc.record({
    op: fc.constant('hold' as const),
    field: fc.constantFrom('pinnedUntil' as const, 'frozenUntil' as const),
    forMs: fc.option(fc.integer({ min: 1, max: 60_000 })),
    rate: fc.oneof(rate, fc.constant(0)),
  }),
  fc.constant({ op: 'release' as const }),
  fc.constant({ op: 'beat' as const }),
);

const start = fc.record({
  rate,
  capacity,
  subjectRate: fc.option(rate, { nil: -1 }),
  subjectCapacity: capacity,
  subjectFollow: fc.constantFrom(0 as const, 1 as const),
  policyRate: rate,
  minRate: fc.constantFrom(0.1, 1, 5),
  probeRate: fc.constantFrom(0.5, 1, 4),
  safeRate: rate,
  lostAfterMs: fc.constantFrom(0, 1_000, 60_000),
  lostOverMs: fc.constantFrom(0, 5_000, 30_000),
});
type Start = typeof start extends fc.Arbitrary<infer T> ? T : never;

/** Between any two takes stand 0 to 10 other things; `withSteps` lets the clock be set as well. */
function story(withSteps: boolean): fc.Arbitrary<Op[]> {
  const between = withSteps
    ? fc.oneof({ weight: 3, arbitrary: write }, { weight: 2, arbitrary: forward }, step)
    : fc.oneof(
        { weight: 6, arbitrary: write },
        { weight: 4, arbitrary: forward },
        fc.constant<Op>({ op: 'expire' }),
      );
  return fc
    .array(
      fc.tuple(
        fc.array(between, { maxLength: 10 }),
        fc.array(anyTake, { minLength: 1, maxLength: 4 }),
      ),
      { minLength: 1, maxLength: 5 },
    )
    .map((rounds) => rounds.flatMap(([changes, takes]) => [...changes, ...takes]));
}

interface Run {
  keys: LimiterKeys;
  model: ClockModel;
  nowUs: number;
  owner: string;
  token: number;
  /** When each bucket's key would be gone, by the clock of this story; null: keys stay. */
  expiry: Map<string, number> | null;
}

async function begin(from: Start, expires: boolean): Promise<Run> {
  const { keys } = fixture.limiter();
  const params: ModelParams = {
    state: 'closed',
    openUntil: 0,
    openForMs: 5_000,
    validUntil: 0,
    pinnedUntil: 0,
    frozenUntil: 0,
    maxCapacity: 1_000,
    ...from,
    subjectCapacity: from.subjectRate < 0 ? 0 : from.subjectCapacity,
  };
  const { validUntil: _own, ...change } = params;
  await seedParams(fixture.redis, keys, { ...SEED, ...change, maxRate: 1_000 }, { nowUs: T0 });
  const granted = await lease(fixture.redis, {
    keys,
    op: 'acquire',
    owner: 'test',
    leaseMs: 600_000,
    nowUs: T0,
  });
  if (granted.status !== 'held') throw new Error('no lease');
  return {
    keys,
    model: new ClockModel(params, T0),
    nowUs: T0,
    owner: 'test',
    token: granted.token,
    expiry: expires ? new Map() : null,
  };
}

/** Does one thing to Redis and to the model; for a take both answers. */
async function act(
  run: Run,
  op: Op,
): Promise<{ reply: TakeReply; answer: TakeAnswer; expected: ModelAnswer } | undefined> {
  const { keys, model, nowUs } = run;
  const nowMs = Math.floor(nowUs / 1000);
  switch (op.op) {
    case 'expire': {
      // To just after the last key is gone: the moment at which too short a life would mint.
      const last = Math.max(nowUs, ...(run.expiry?.values() ?? []));
      return act(run, { op: 'wait', us: last - nowUs });
    }
    case 'wait':
      run.nowUs += op.us;
      for (const [key, atUs] of run.expiry ?? [])
        if (atUs <= run.nowUs) await fixture.redis.del(key);
      return;
    case 'beat': {
      const reply = await heartbeat(fixture.redis, { ...run, leaseMs: LEASE_MS });
      expect(reply.status === 'ok').toBe(model.beat(LEASE_MS, nowUs));
      return;
    }
    case 'hold':
    case 'release':
    case 'change': {
      let change: ModelChange;
      if (op.op === 'change') change = op.change;
      else if (op.op === 'release') change = { pinnedUntil: 0, frozenUntil: 0 };
      else change = { [op.field]: op.forMs === null ? -1 : nowMs + op.forMs, rate: op.rate };
      const reply = await changeParams(fixture.redis, keys, change, { nowUs });
      expect(reply).toMatchObject({ status: 'ok' });
      model.change(change, nowUs);
      return;
    }
    case 'take': {
      const reply = await take(fixture.redis, {
        keys,
        takes: [{ subject: op.subject, cost: op.cost, priority: 'default' }],
        chargeByUs: 'any',
        fallback: FALLBACK,
        shadow: false,
        nowUs,
      });
      const expected = model.take(op.subject, op.cost, nowUs);
      if (run.expiry !== null && reply.answers[0]!.allowed && op.cost > 0) {
        for (const key of [
          keys.bucket,
          ...(op.subject === null ? [] : [keys.subjectBucket(op.subject)]),
        ]) {
          // A millisecond of the server's own clock may have passed since the write.
          run.expiry.set(key, nowUs + ((await fixture.redis.pttl(key)) + 5) * 1000);
        }
      }
      return { reply, answer: reply.answers[0]!, expected };
    }
  }
}

/** Doubles of the size of V carry this much; the model adds its pieces in another order. */
function tolerance(model: ClockModel, nowUs: number): number {
  const size = Math.max(Math.abs(model.v(nowUs)), Math.abs(model.subjectV(nowUs)));
  return 2e-6 + size * 2 ** -44;
}

async function compareState(run: Run) {
  const { keys, model, nowUs } = run;
  const stored = (await storedParams(fixture.redis, keys))!;
  const near = (actual: number, wanted: number) =>
    expect(Math.abs(actual - wanted)).toBeLessThanOrEqual(1e-6 + Math.abs(wanted) * 1e-9);
  expect(stored.state).toBe(model.params.state);
  expect(stored.openUntil).toBe(model.params.openUntil);
  near(stored.accrued, model.accrued);
  near(stored.floor, model.floor);
  if (stored.subjectRate >= 0) {
    near(stored.subjectAccrued, model.subjectAccrued);
    near(stored.subjectFloor, model.subjectFloor);
  }
  return nowUs;
}

test('any changes, trips, holds, glides and clock steps between takes: the script equals the model', async () => {
  await fc.assert(
    fc.asyncProperty(
      start,
      fc.boolean().chain((steps) => fc.tuple(fc.constant(steps), story(steps))),
      async (from, [steps, ops]) => {
        // Keys expire where the clock is never set: a step forward may take a key with it (one capacity, stated).
        const run = await begin(from, !steps);
        for (const op of ops) {
          const took = await act(run, op);
          if (took === undefined) continue;
          const { answer, expected, reply } = took;
          if (expected.margin < tolerance(run.model, run.nowUs)) return; // on the edge both are right
          expect(answer.reason satisfies TakeReason).toBe(expected.reason);
          expect(Math.abs(answer.remaining - Math.max(0, expected.left))).toBeLessThanOrEqual(
            1 + tolerance(run.model, run.nowUs),
          );
          expect(reply.inForce.rate).toBeCloseTo(run.model.rateAt(run.nowUs), 6);
          expect(reply.inForce.capacity).toBeCloseTo(run.model.capacityAt(run.nowUs), 6);
          expect(reply.inForce.state).toBe(run.model.stateAt(run.nowUs));
        }
        await compareState(run);
      },
    ),
    { numRuns: 150 },
  );
});

/** Half-open without a trip, then a glide: what the narrow capacity had cut off must not come back with it. */
const WIDENED_BY_GLIDE: [Start, Op[]] = [
  {
    ...{ rate: 0.1, capacity: 1.5, subjectRate: -1, subjectCapacity: 1.5, subjectFollow: 0 },
    ...{
      policyRate: 0.01,
      minRate: 0.1,
      probeRate: 0.5,
      safeRate: 1,
      lostAfterMs: 1000,
      lostOverMs: 0,
    },
  },
  [
    { op: 'change', change: { capacity: 100 }, cause: 'person' },
    { op: 'change', change: { state: 'half-open' }, cause: 'person' },
    { op: 'wait', us: 1_000_000 },
    { op: 'take', subject: null, cost: 1.500003 },
  ],
];

test('I5: in any time no bucket passes more than capacity and what the rate paid meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(start, story(false), async (from, ops) => {
      const run = await begin(from, true);
      const { model } = run;
      /** For each bucket: room (capacity now plus what was paid since) left by each earlier moment. */
      const rooms = new Map<string, number[]>([
        ['', []],
        ['a', []],
        ['b', []],
      ]);
      const open = () => {
        for (const [name, room] of rooms) {
          room.push(name === '' ? model.capacityAt(run.nowUs) : model.params.subjectCapacity);
        }
      };
      open();
      for (const op of ops) {
        if (op.op === 'wait' || op.op === 'expire') {
          const last = Math.max(run.nowUs, ...(run.expiry?.values() ?? []));
          const next = op.op === 'wait' ? run.nowUs + op.us : last;
          const paid = model.paid((us) => model.rateAt(us), run.nowUs, next);
          const own = model.paid((us) => model.subjectRateAt(us), run.nowUs, next);
          for (const [name, room] of rooms) {
            for (const [i, left] of room.entries()) room[i] = left + (name === '' ? paid : own);
          }
          await act(run, op);
          open();
          continue;
        }
        const took = await act(run, op);
        if (took === undefined) {
          open();
          continue;
        }
        if (op.op !== 'take' || !took.answer.allowed) continue;
        for (const name of new Set(['', ...(op.subject === null ? [] : [op.subject])])) {
          if (name !== '' && from.subjectRate < 0) continue;
          const room = rooms.get(name)!;
          for (const [i, left] of room.entries()) {
            room[i] = left - op.cost;
            expect(room[i]).toBeGreaterThanOrEqual(-tolerance(model, run.nowUs));
          }
        }
      }
    }),
    { numRuns: 150, examples: [WIDENED_BY_GLIDE] },
  );
});
