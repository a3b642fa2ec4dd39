/** Blocks of tokens: the script against a model, and what is drawn and not given back never passes what the rate paid. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DrawReply, draw } from '../../src/redis/draw.js';
import { S, T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const fixture = useRedis();
const NAMES = ['a', 'b{}'] as const;

interface Numbers {
  rate: number;
  capacity: number;
  subjectRate: number;
  subjectCapacity: number;
  reserveDefault: number;
}
const numbers: fc.Arbitrary<Numbers> = fc.record({
  rate: fc.constantFrom(1, 20, 300),
  capacity: fc.constantFrom(1, 40, 1000),
  subjectRate: fc.constantFrom(-1, 2, 100),
  subjectCapacity: fc.constantFrom(10, 500),
  reserveDefault: fc.constantFrom(0, 0.25),
});
const each = fc.record({
  want: fc.integer({ min: 0, max: 600 }),
  backShare: fc.constantFrom(0, 0, 0.5, 1),
});
const step = fc.record({
  waitUs: fc.integer({ min: 0, max: 3_000_000 }),
  total: each,
  subjects: fc.tuple(each, each),
  takes: fc.integer({ min: 0, max: 3 }),
});

/** Tokens of a bucket: they fill up to the capacity, and half of what is above the reserve may be drawn. */
class Model {
  tokens: number;
  held = 0;
  atUs = T0;

  constructor(
    readonly rate: number,
    readonly capacity: number,
    readonly reserve: number,
  ) {
    this.tokens = capacity;
  }

  fill(nowUs: number) {
    this.tokens = Math.min(this.capacity, this.tokens + (this.rate * (nowUs - this.atUs)) / S);
    this.atUs = nowUs;
  }

  draw(want: number, back: number) {
    this.held -= back;
    this.tokens = Math.min(this.capacity, this.tokens + back);
    const given = Math.max(0, Math.min(want, Math.floor((this.tokens - this.reserve) / 2 + 1e-6)));
    this.tokens -= given;
    this.held += given;
    return { given, left: Math.floor(this.tokens + 1e-6) };
  }
}

test('any draws, returns and takes: the script equals the model, and no bucket passes more than it may', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, fc.array(step, { minLength: 1, maxLength: 8 }), async (of, steps) => {
      const { keys, call } = fixture.limiter();
      await seedParams(fixture.redis, keys, { ...of, mode: 'auto' }, { nowUs: T0 });
      const { epoch } = (await call([{ cost: 0 }], T0)).inForce;
      const total = new Model(of.rate, of.capacity, of.reserveDefault * of.capacity);
      const own = NAMES.map(() => new Model(of.subjectRate, of.subjectCapacity, 0));
      let now = T0;
      let passed = 0;
      for (const { waitUs, takes, ...wants } of steps) {
        now += waitUs;
        const back = (model: Model, share: number) => Math.floor(model.held * share);
        const asked = own.map((model, i) => ({
          subject: NAMES[i]!,
          want: wants.subjects[i]!.want,
          back: back(model, wants.subjects[i]!.backShare),
        }));
        const ofTotal = { want: wants.total.want, back: back(total, wants.total.backShare) };
        const reply = await draw(fixture.redis, {
          keys,
          epoch,
          total: ofTotal,
          subjects: asked,
          nowUs: now,
        });
        total.fill(now);
        const expected = [total.draw(ofTotal.want, ofTotal.back)];
        for (const [i, { want, back }] of asked.entries()) {
          own[i]!.fill(now);
          expected.push(of.subjectRate < 0 ? { given: 0, left: 0 } : own[i]!.draw(want, back));
        }
        expect(reply.drawn).toEqual(expected);
        // Takes one by one share the bucket with those who draw.
        for (let i = 0; i < takes; i++) {
          const { answers } = await call([{}], now);
          if (answers[0]?.allowed) {
            total.tokens -= 1;
            passed += 1;
          }
        }
        const paid = of.capacity + (of.rate * (now - T0)) / S;
        expect(passed + total.held).toBeLessThanOrEqual(paid + 1e-6);
      }
    }),
    { numRuns: 60 },
  );
});

async function drawOnce(keys: ReturnType<typeof fixture.limiter>['keys'], more = {}) {
  return draw(fixture.redis, {
    keys,
    epoch: 0,
    total: { want: 10, back: 0 },
    subjects: [],
    nowUs: T0,
    ...more,
  });
}

test.each([
  ['shadow', { mode: 'shadow' }],
  ['off', { mode: 'off' }],
  ['open', { state: 'open' }],
  ['half-open', { state: 'half-open', probeRate: 1 }],
  ['another algorithm', { algorithm: 'sliding-log', windowMs: 1000 }],
] as const)('%s: nothing is drawn in blocks, and nothing is written', async (_what, change) => {
  const { keys } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 100, capacity: 100 }, { nowUs: T0 });
  await changeParams(fixture.redis, keys, { openForMs: 5000, ...change }, { nowUs: T0 });
  const reply: DrawReply = await drawOnce(keys);
  expect(reply.drawn).toBeNull();
  expect(reply.inForce).not.toBeNull();
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
});

test('without params nothing is drawn', async () => {
  const { keys } = fixture.limiter();
  expect(await drawOnce(keys)).toMatchObject({ inForce: null, drawn: null });
});

test('tokens of another epoch are not taken back, nor those of a bucket that was emptied since', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 0.001, capacity: 100 }, { nowUs: T0 });
  const { epoch } = (await call([{ cost: 0 }], T0)).inForce;
  await drawOnce(keys, { total: { want: 50, back: 0 } });
  const give = (of: number) => drawOnce(keys, { epoch: of, total: { want: 0, back: 20 } });
  expect((await give(epoch + 1)).drawn).toEqual([{ given: 0, left: 50 }]);
  expect((await give(epoch)).drawn).toEqual([{ given: 0, left: 70 }]);
  await changeParams(fixture.redis, keys, { state: 'open', openForMs: 1000 }, { nowUs: T0 });
  await changeParams(fixture.redis, keys, { state: 'closed' }, { nowUs: T0 });
  expect((await give(epoch)).drawn).toEqual([{ given: 0, left: 0 }]);
});

test.each([
  ['no draw', ['', '0']],
  ['a half', ['', '0', '1.5 0']],
  ['one below 0', ['', '0', '1 -1']],
  ['a time that is none', ['soon', '0', '1 0']],
  ['an epoch that is none', ['', 'x', '1 0']],
])('%s is refused by name', async (_what, args) => {
  const { keys } = fixture.limiter();
  const { drawScript } = await import('../../src/redis/scripts.gen.js');
  const call = fixture.redis.eval(drawScript.lua, 2, keys.params, keys.bucket, ...args);
  await expect(call).rejects.toThrow(/^FLYBALL_E_CALL_INVALID/);
});
