/** Fair shares under streams of uneven subjects: each gets its max-min share of the rate, and who asks for less gets all. */
import { describe, expect, test } from 'vitest';
import type { TakeAnswer } from '../../src/redis/calls.js';
import type { ParamChange } from '../../src/redis/params.js';
import { seeded } from '../../src/sim/random.js';
import { changeParams, seedParams, storedParams } from '../support/seed-params.js';
import { type Limiter, reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const FAIR: ParamChange = { mode: 'recommend', subjectRules: 1, subjectTerms: 'fair=1' };
const RATE = 100;

async function limiter(change: ParamChange = {}): Promise<Limiter> {
  const made = fixture.limiter();
  await seedParams(
    fixture.redis,
    made.keys,
    { ...FAIR, rate: RATE, capacity: 100, ...change },
    { nowUs: T0 },
  );
  return made;
}

/** Takes a second of each subject; a function of the second for one that comes and goes. */
type Load = Record<string, number | ((second: number) => number)>;
interface Tally {
  offered: number;
  admitted: number;
  reasons: Record<string, number>;
}

/** Random arrivals, in calls of 20 ms; what came in the seconds of `counted`. */
async function stream(
  made: Limiter,
  load: Load,
  seconds: number,
  counted: [number, number] = [2, seconds],
): Promise<Map<string, Tally>> {
  const random = seeded(7);
  const tallies = new Map<string, Tally>();
  for (const name of Object.keys(load)) {
    tallies.set(name, { offered: 0, admitted: 0, reasons: {} });
  }
  const stepUs = 20_000;
  for (let at = 0; at < seconds * S; at += stepUs) {
    const second = at / S;
    const takes: string[] = [];
    for (const [name, rate] of Object.entries(load)) {
      const expected = ((typeof rate === 'number' ? rate : rate(second)) * stepUs) / S;
      let n = Math.floor(expected);
      if (random() < expected - n) n += 1;
      for (let i = 0; i < n; i++) takes.splice(Math.floor(random() * (takes.length + 1)), 0, name);
    }
    if (takes.length === 0) continue;
    const { answers } = await made.call(
      takes.map((subject) => ({ subject })),
      T0 + at,
      { rules: true },
    );
    if (second < counted[0] || second >= counted[1]) continue;
    for (const [i, answer] of answers.entries()) count(tallies.get(takes[i]!)!, answer);
  }
  return tallies;
}

function count(tally: Tally, { allowed, reason }: TakeAnswer): void {
  tally.offered += 1;
  if (allowed) tally.admitted += 1;
  else tally.reasons[reason] = (tally.reasons[reason] ?? 0) + 1;
}

const many = (n: number, prefix: string, rate: number): Load =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`${prefix}${i}`, rate]));
const sum = (list: Iterable<Tally>) => [...list].reduce((n, { admitted }) => n + admitted, 0);
const some = (tallies: Map<string, Tally>, prefix: string) =>
  [...tallies].filter(([name]) => name.startsWith(prefix)).map(([, tally]) => tally);

describe('max-min shares', () => {
  test('one heavy and twenty light: no light one is refused, the heavy one gets the rest', async () => {
    const tallies = await stream(
      await limiter(),
      { heavy: 1000, ...many(20, 'light', 3) },
      20,
      [6, 20],
    );
    for (const each of some(tallies, 'light')) expect(each.admitted).toBe(each.offered);
    const heavy = tallies.get('heavy')!;
    expect(heavy.admitted / 14).toBeGreaterThan(36);
    expect(heavy.admitted / 14).toBeLessThan(44);
    expect(Object.keys(heavy.reasons)).toEqual(['fair_share']);
    expect(sum(tallies.values()) / 14).toBeGreaterThan(98);
  });

  test('two heavy ones, one ten times the other: both get the same', async () => {
    const load = { big: 2000, small: 200, ...many(10, 'light', 2) };
    const tallies = await stream(await limiter(), load, 12);
    for (const each of some(tallies, 'light')) expect(each.admitted).toBe(each.offered);
    for (const name of ['big', 'small']) {
      expect(tallies.get(name)!.admitted / 10).toBeGreaterThan(37);
      expect(tallies.get(name)!.admitted / 10).toBeLessThan(43);
    }
  });

  test('all equal, twice the rate: all get the same', async () => {
    const tallies = await stream(await limiter(), many(10, 's', 20), 22);
    for (const each of tallies.values()) {
      expect(each.admitted / 20).toBeGreaterThan(9);
      expect(each.admitted / 20).toBeLessThan(11);
    }
  });

  test('three levels: who asks for less than its share gets all, the others share what is left', async () => {
    const load = { a: 500, b: 300, c: 20, d: 10 };
    const tallies = await stream(await limiter(), load, 12);
    for (const name of ['c', 'd']) {
      const { admitted, offered } = tallies.get(name)!;
      expect(admitted).toBe(offered);
    }
    for (const name of ['a', 'b']) {
      expect(tallies.get(name)!.admitted / 10).toBeGreaterThan(33);
      expect(tallies.get(name)!.admitted / 10).toBeLessThan(37);
    }
  });

  test('one that comes and goes: its share while it is there, nobody refused below theirs, all to the other again', async () => {
    const load: Load = {
      always: 400,
      guest: (s) => (s >= 6 && s < 12 ? 400 : 0),
      ...many(5, 'light', 4),
    };
    // The first two seconds go into the room that is kept.
    const within = async (span: [number, number]) => stream(await limiter(), load, 16, span);
    const [before, during, after] = await Promise.all([
      within([4, 6]),
      within([8, 12]),
      within([14, 16]),
    ]);
    expect(before.get('always')!.admitted / 2).toBeGreaterThan(74);
    for (const name of ['always', 'guest']) {
      expect(during.get(name)!.admitted / 4).toBeGreaterThan(36);
      expect(during.get(name)!.admitted / 4).toBeLessThan(44);
    }
    expect(after.get('always')!.admitted / 2).toBeGreaterThan(74);
    for (const tallies of [before, during, after]) {
      for (const each of some(tallies, 'light')) expect(each.admitted).toBe(each.offered);
    }
  });

  test('costs count: who takes ten at a time gets as many tokens, not as many takes', async () => {
    const made = await limiter();
    const got = { ones: 0, tens: 0 };
    for (let i = 0; i < 1000; i++) {
      const takes = [
        ...Array.from({ length: 5 }, () => ({ subject: 'ones', cost: 1 })),
        { subject: 'tens', cost: 10 },
      ];
      const { answers } = await made.call(takes, T0 + i * 20_000, { rules: true });
      for (const [j, { allowed }] of answers.entries()) {
        if (allowed) got[takes[j]!.subject as 'ones'] += takes[j]!.cost;
      }
    }
    expect(got.tens / got.ones).toBeGreaterThan(0.85);
    expect(got.tens / got.ones).toBeLessThan(1.15);
  });
});

describe('where the total does not bind', () => {
  test('nobody is limited by it, and nothing is written for it: a burst of the whole bucket passes', async () => {
    const made = await limiter();
    await made.call([{ subject: 'light' }], T0, { rules: true });
    const burst = Array.from({ length: 99 }, () => ({ subject: 'heavy' }));
    const { answers } = await made.call(burst, T0, { rules: true });
    expect(answers.every(({ allowed }) => allowed)).toBe(true);
    expect(await fixture.redis.exists(made.keys.owed(false))).toBe(0);
  });

  test('it ends by itself: after as long as the bucket takes to fill without a refusal, a burst passes whole again', async () => {
    const made = await limiter();
    const burst = (n: number, us: number) =>
      made.call(
        Array.from({ length: n }, () => ({ subject: 'heavy' })),
        T0 + us,
        { rules: true },
      );
    expect(reasons(await burst(101, 0)).filter((each) => each === 'rate')).toHaveLength(1);
    expect(await fixture.redis.pttl(made.keys.owed(false))).toBeLessThanOrEqual(2_000);
    const again = reasons(await burst(100, 1 * S - 1));
    expect(again.filter((each) => each === 'ok').length).toBeLessThan(60);
    expect(reasons(await burst(100, 4 * S)).every((each) => each === 'ok')).toBe(true);
  });

  test('one that is alone is denied by the rate, and by no share; the room that is kept costs it no rate', async () => {
    const tallies = await stream(await limiter(), { alone: 500 }, 8);
    const { admitted, reasons: why } = tallies.get('alone')!;
    expect(admitted / 6).toBeGreaterThan(98);
    expect(Object.keys(why)).toEqual(['rate']);
  });
});

describe('beside what else is known', () => {
  test('takes without a subject, and an exempt one, are held back by no share', async () => {
    const made = await limiter();
    const fill = Array.from({ length: 101 }, () => ({ subject: 'a' }));
    await made.call(fill, T0, { rules: true });
    const { answers } = await made.call(
      [
        { subject: 'a' },
        { subject: 'a' },
        ...Array.from({ length: 20 }, () => ({ subject: null })),
      ],
      T0 + 0.25 * S,
      { rules: true },
    );
    expect(answers.slice(2).every(({ allowed }) => allowed)).toBe(true);
  });

  test('an open breaker and its probes know no shares; they hold again once it is closed', async () => {
    const made = await limiter();
    const burst = Array.from({ length: 120 }, (_, i) => ({ subject: i < 110 ? 'a' : 'b' }));
    await made.call(burst, T0, { rules: true });
    const tripped = await changeParams(
      fixture.redis,
      made.keys,
      { state: 'open', openUntil: T0 / 1000 + 1000, generation: 1 },
      { nowUs: T0 },
    );
    expect(tripped).toMatchObject({ status: 'ok' });
    const open = await made.call([{ subject: 'a' }, { subject: 'b' }], T0 + S / 2, { rules: true });
    expect(reasons(open)).toEqual(['breaker_open', 'breaker_open']);
    const probe = await made.call([{ subject: 'a' }, { subject: 'a' }], T0 + 2.5 * S, {
      rules: true,
    });
    expect(reasons(probe)).toEqual(['ok', 'probe_budget']);
  });

  test('in shadow the would-be answers are by debts of their own', async () => {
    const made = await limiter({ mode: 'shadow' });
    const takes = Array.from({ length: 130 }, (_, i) => ({ subject: i % 2 ? 'a' : 'b' }));
    const reply = await made.call(takes, T0, { rules: true, shadow: true });
    expect(reasons(reply)).toContain('rate');
    expect(await fixture.redis.exists(made.keys.owed(true))).toBe(1);
    expect(await fixture.redis.exists(made.keys.owed(false))).toBe(0);
  });

  test('remaining tells what the subject may still take now', async () => {
    const made = await limiter();
    await made.call(
      Array.from({ length: 101 }, () => ({ subject: 'a' })),
      T0,
      { rules: true },
    );
    const at = T0 + 0.4 * S;
    const peek = (await made.call([{ subject: 'b', cost: 0 }], at, { rules: true })).answers[0]!;
    const takes = Array.from({ length: 40 }, () => ({ subject: 'b' }));
    const { answers } = await made.call(takes, at, { rules: true });
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(peek.remaining);
  });

  test('a denial tells when the same take passes, if nobody else takes', async () => {
    const made = await limiter();
    const takes = Array.from({ length: 140 }, (_, i) => ({ subject: i % 3 ? 'a' : 'b' }));
    await made.call(takes, T0, { rules: true });
    const at = T0 + 0.5 * S;
    await made.call(takes, at, { rules: true });
    const ask = async (us: number, cost = 1) =>
      (await made.call([{ subject: 'a', cost }], at + us, { rules: true })).answers[0]!;
    const denied = await ask(0);
    expect(denied.reason).toBe('fair_share');
    const waitUs = denied.retryAfterMs! * 1000;
    // A peek, for a take less: that is 20 ms of what comes in and of what is paid.
    expect((await ask(waitUs - 25_000, 0)).allowed).toBe(false);
    expect((await ask(waitUs)).reason).toBe('ok');
  });
});

test('memory: nobody makes more debts than the bucket has tokens, and all are gone when it is over', async () => {
  const made = await limiter({ rate: 1000, capacity: 400 });
  for (let i = 0; i < 20; i++) {
    const takes = Array.from({ length: 200 }, (_, j) => ({ subject: `made-up-${i}-${j}` }));
    await made.call(takes, T0 + i * 50_000, { rules: true });
  }
  const owed = made.keys.owed(false);
  const entries = await fixture.redis.zcard(owed);
  expect(entries).toBeGreaterThan(100);
  expect(entries).toBeLessThanOrEqual(404);
  expect((await fixture.redis.memory('USAGE', owed))! / entries).toBeLessThan(160);
  expect(await fixture.redis.pttl(owed)).toBeGreaterThan(0);
  expect((await storedParams(fixture.redis, made.keys))!.subjectRules).toBe(1);
});
