/** What is known of single subjects in Redis against a model: overrides by a person, their ends, tiers by outcomes; I5. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TakeAnswer, TakeRequest } from '../../src/redis/calls.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { take } from '../../src/redis/scripts.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject, type SubjectRule } from '../../src/redis/subject-override.js';
import { T0, useRedis } from '../lua/fixture.js';
import { seedParams, storedParams, testEntry } from '../support/seed-params.js';

const FALLBACK = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
const KEEP_MS = 60_000;

const fixture = useRedis();

interface Numbers {
  rate: number | null;
  capacity: number | null;
}
interface Step extends Numbers {
  times: number;
}

/** One subject as people would count it by hand: tokens, moved on to each moment at which its numbers change. */
class SubjectModel {
  tokens: number;
  atUs = T0;
  override: (SubjectRule & { kind: 'limit' | 'block' | 'exempt' }) | null = null;
  inARow = 0;
  heardUs = 0;

  constructor(
    readonly policy: { rate: number; capacity: number },
    readonly steps: readonly Step[],
  ) {
    this.tokens = policy.capacity;
  }

  tierAt(nowUs: number): Step | null {
    if (this.inARow > 0 && nowUs >= this.heardUs + KEEP_MS * 1000) this.inARow = 0;
    return this.steps.findLast((step) => this.inARow >= step.times) ?? null;
  }

  overrideAt(nowUs: number) {
    const { override } = this;
    return override && (override.untilMs === -1 || override.untilMs * 1000 > nowUs)
      ? override
      : null;
  }

  numbersAt(nowUs: number): { rate: number; capacity: number } {
    const override = this.overrideAt(nowUs);
    const own = override?.kind === 'limit' ? override : this.tierAt(nowUs);
    return {
      rate: own?.rate ?? this.policy.rate,
      capacity: own?.capacity ?? this.policy.capacity,
    };
  }

  /** Fills by the numbers of each piece of time between their changes. */
  settle(nowUs: number): void {
    const ends = this.override === null ? -1 : this.override.untilMs * 1000;
    const lapse = this.inARow > 0 ? this.heardUs + KEEP_MS * 1000 : -1;
    const cuts = [ends, lapse]
      .filter((each) => each > this.atUs && each <= nowUs)
      .sort((a, b) => a - b);
    for (const to of [...cuts, nowUs]) {
      const { rate, capacity } = this.numbersAt(this.atUs);
      this.tokens = Math.min(capacity, this.tokens + (rate * (to - this.atUs)) / 1e6);
      this.atUs = to;
      this.tokens = Math.min(this.tokens, this.numbersAt(to).capacity);
    }
  }

  take(cost: number, nowUs: number): { reason: TakeAnswer['reason']; margin: number } {
    this.settle(nowUs);
    const kind = this.overrideAt(nowUs)?.kind;
    if (kind === 'block') return { reason: 'blocked', margin: 1 };
    if (kind === 'exempt') return { reason: 'exempt', margin: 1 };
    const { capacity } = this.numbersAt(nowUs);
    if (cost > capacity) return { reason: 'cost_exceeds_capacity', margin: 1 };
    const margin = Math.abs(this.tokens - cost);
    if (cost > this.tokens + 5e-7) return { reason: 'subject', margin };
    this.tokens -= cost;
    return { reason: 'ok', margin };
  }
}

const rate = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constantFrom(0.25, 0.5, 1.5, 12.5));
const capacity = fc.integer({ min: 1, max: 60 });
type Op =
  | { op: 'wait'; us: number }
  | { op: 'take'; cost: number }
  | { op: 'say'; kind: SubjectRule['kind'] | 'clear'; forMs: number | null; numbers: Numbers }
  | { op: 'outcome'; name: 'paid' | 'failed' };

const numbers: fc.Arbitrary<Numbers> = fc.oneof(
  fc.record({ rate: rate as fc.Arbitrary<number | null>, capacity: fc.option(capacity) }),
  fc.record({ rate: fc.constant(null), capacity: capacity as fc.Arbitrary<number | null> }),
);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      us: fc.integer({ min: 0, max: 8_000_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      us: fc.integer({ min: 0, max: 90_000_000 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('take' as const),
      cost: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 60 })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('say' as const),
      kind: fc.constantFrom('limit', 'limit', 'limit', 'block', 'exempt', 'clear'),
      forMs: fc.option(fc.integer({ min: 1, max: 20_000 })),
      numbers,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('outcome' as const),
      name: fc.constantFrom('paid', 'paid', 'paid', 'failed'),
    }),
  },
);

const start = fc.record({ rate, capacity }).chain((policy) =>
  fc.record({
    policy: fc.constant(policy),
    steps: fc
      .array(
        fc.record({
          more: fc.integer({ min: 1, max: 3 }),
          rate: fc.option(fc.integer({ min: 0, max: 20 })),
          capacity: fc.integer({ min: 0, max: 30 }),
        }),
        { maxLength: 2 },
      )
      .map((list) => {
        let times = 0;
        let least = { ...policy };
        // A tier only raises, as the policy's check demands.
        return list.map((each): Step => {
          times += each.more;
          least = {
            rate: least.rate + (each.rate ?? 0),
            capacity: least.capacity + each.capacity,
          };
          return { times, rate: each.rate === null ? null : least.rate, capacity: least.capacity };
        });
      }),
    ops: fc.array(op, { minLength: 1, maxLength: 30 }),
  }),
);

function termsOf(steps: readonly Step[]): string {
  if (steps.length === 0) return '';
  const list = steps.map((s) => `step=${s.times}:${s.capacity ?? '-'}:${s.rate ?? '-'}`);
  return `on=paid reset=failed keep=${KEEP_MS} ${list.join(' ')}`;
}

interface Run {
  keys: LimiterKeys;
  model: SubjectModel;
  nowUs: number;
  /** When each key would be gone by the clock of this story. */
  expiry: Map<string, number>;
}

async function begin(policy: SubjectModel['policy'], steps: readonly Step[]): Promise<Run> {
  const { keys } = fixture.limiter();
  const terms = termsOf(steps);
  await seedParams(
    fixture.redis,
    keys,
    {
      ...{ rate: 1e6, capacity: 1e6, maxRate: 1e6, maxCapacity: 1e6, mode: 'recommend' },
      ...{ subjectRate: policy.rate, subjectCapacity: policy.capacity },
      ...{ subjectTerms: terms, subjectRules: terms === '' ? 0 : 1 },
    },
    { nowUs: T0 },
  );
  return { keys, model: new SubjectModel(policy, steps), nowUs: T0, expiry: new Map() };
}

async function remember({ keys, nowUs, expiry, model }: Run): Promise<void> {
  const bucket = keys.subjectBucket('a');
  const ms = await fixture.redis.pttl(bucket);
  // A millisecond of the server's own clock may have passed since the write.
  if (ms >= 0) expiry.set(bucket, nowUs + (ms + 5) * 1000);
  else expiry.delete(bucket);
  if (model.inARow > 0) expiry.set(keys.standing('a'), model.heardUs + KEEP_MS * 1000);
}

let ids = 0;
async function act(run: Run, each: Op): Promise<TakeAnswer | null> {
  const { keys, model, nowUs } = run;
  if (each.op === 'wait') {
    run.nowUs += each.us;
    for (const [key, atUs] of run.expiry) if (atUs <= run.nowUs) await fixture.redis.del(key);
    return null;
  }
  if (each.op === 'outcome') {
    ids += 1;
    await countOutcome(fixture.redis, {
      keys,
      subject: 'a',
      name: each.name,
      id: `i${ids}`,
      nowUs,
    });
    if (model.steps.length > 0) {
      model.settle(nowUs);
      const most = model.steps.at(-1)!.times;
      model.inARow = each.name === 'paid' ? Math.min(most, model.inARow + 1) : 0;
      model.heardUs = nowUs;
      model.settle(nowUs);
    }
  } else if (each.op === 'say') {
    const params = (await storedParams(fixture.redis, keys))!;
    const { epoch, revision } = params;
    const untilMs = each.forMs === null ? -1 : Math.ceil(nowUs / 1000) + each.forMs;
    const { kind } = each;
    const own = kind === 'limit' ? each.numbers : { rate: null, capacity: null };
    const rule = kind === 'clear' ? null : { kind, untilMs, ...own };
    const reply = await overrideSubject(fixture.redis, {
      ...{ keys, subject: 'a', nowUs, expected: { epoch, revision } },
      override: rule && { ...rule, subject: 'a', by: 'test', why: '', revision: revision + 1 },
      entry: await testEntry(fixture.redis, keys, epoch, revision + 1, 'said by a test'),
    });
    expect(reply).toMatchObject({ status: 'ok' });
    model.settle(nowUs);
    model.override = rule;
    model.settle(nowUs);
  } else {
    const rules = (await storedParams(fixture.redis, keys))!.subjectRules === 1;
    const reply = await take(fixture.redis, {
      ...{ keys, chargeByUs: 'any', fallback: FALLBACK, shadow: false, rules, nowUs },
      takes: [{ subject: 'a', cost: each.cost, priority: 'default' }],
    });
    expect(reply.status).toBe('ok');
    await remember(run);
    return reply.answers[0]!;
  }
  await remember(run);
  return null;
}

test('any words of a person, their ends, outcomes, waits and takes: the script equals the model', async () => {
  await fc.assert(
    fc.asyncProperty(start, async ({ policy, steps, ops }) => {
      const run = await begin(policy, steps);
      for (const each of ops) {
        const answer = await act(run, each);
        if (answer === null || each.op !== 'take') continue;
        const expected = run.model.take(each.cost, run.nowUs);
        if (expected.margin < 1e-4) return; // on the edge both are right
        expect(answer.reason).toBe(expected.reason);
      }
    }),
    { numRuns: 200 },
  );
});

test('I5: in any time a subject passes no more than its capacity and what its rate paid meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(start, async ({ policy, steps, ops }) => {
      const run = await begin(policy, steps);
      const { model } = run;
      /** Room left by each earlier moment: the capacity then, and what was paid since. */
      const room: number[] = [];
      const open = () => room.push(model.numbersAt(run.nowUs).capacity);
      open();
      for (const each of ops) {
        if (each.op === 'wait') {
          // By pieces, since numbers may end on the way; a small step bounds what a piece may misjudge.
          const from = run.nowUs;
          const cuts = [
            (model.override?.untilMs ?? -1) * 1000,
            model.inARow > 0 ? model.heardUs + KEEP_MS * 1000 : -1,
          ].filter((at) => at > from && at < from + each.us);
          let at = from;
          for (const to of [...cuts.sort((a, b) => a - b), from + each.us]) {
            const paid = (model.numbersAt(at).rate * (to - at)) / 1e6;
            for (const i of room.keys()) room[i]! += paid;
            at = to;
            room.push(model.numbersAt(to).capacity);
          }
        }
        const answer = await act(run, each);
        open();
        if (each.op !== 'take' || !answer?.allowed) continue;
        if (model.overrideAt(run.nowUs)?.kind === 'exempt') continue;
        for (const i of room.keys()) {
          room[i]! -= each.cost;
          expect(room[i]!).toBeGreaterThanOrEqual(-1e-4);
        }
      }
    }),
    { numRuns: 200 },
  );
});

describe('where nothing is known of the subjects', () => {
  const one: fc.Arbitrary<TakeRequest> = fc.record({
    subject: fc.constantFrom(null, 'a', 'b', 'c'),
    cost: fc.constantFrom(0, 1, 2, 0.5, 3),
    priority: fc.constantFrom('default' as const, 'critical' as const, 'sheddable' as const),
  });
  test('a batch by this script answers what `take` answers, and leaves the same marks', async () => {
    const batches = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 3e6 }), fc.array(one, { minLength: 1, maxLength: 12 })),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(batches, rate, capacity, async (list, subjectRate, subjectCapacity) => {
        const answers: unknown[][] = [[], []];
        const marks: unknown[] = [];
        for (const rules of [false, true]) {
          const { keys } = fixture.limiter();
          await seedParams(
            fixture.redis,
            keys,
            {
              ...{ rate: 20, capacity: 20, subjectRate, subjectCapacity, reserveSheddable: 0.2 },
              ...(rules ? { subjectRules: 1 as const, subjectTerms: 'max=100' } : {}),
            },
            { nowUs: T0 },
          );
          let nowUs = T0;
          for (const [us, takes] of list) {
            nowUs += us;
            const call = { keys, takes, fallback: FALLBACK, shadow: false, rules, nowUs };
            const reply = await take(fixture.redis, { ...call, chargeByUs: 'any' });
            answers[rules ? 1 : 0]!.push(reply.answers);
          }
          marks.push(
            await fixture.redis.mget(keys.bucket, ...['a', 'b', 'c'].map(keys.subjectBucket)),
          );
        }
        expect(answers[1]).toEqual(answers[0]);
        expect(marks[1]).toEqual(marks[0]);
      }),
      { numRuns: 60 },
    );
  });
});
