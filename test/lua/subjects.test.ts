/** What is known of single subjects, one by one: blocks, exemptions, own numbers, tiers, the crowd; in every algorithm. */
import { describe, expect, test } from 'vitest';
import type { TakeCall, TakeRequest } from '../../src/redis/calls.js';
import { encodeSubject } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject, type SubjectRule } from '../../src/redis/subject-override.js';
import { changeParams, seedParams, storedParams, testEntry } from '../support/seed-params.js';
import { FALLBACK, type Limiter, reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const TERMS = {
  'token-bucket': undefined,
  'sliding-log': { algorithm: 'sliding-log', windowMs: 10_000, cells: 0 },
  'sliding-counter': { algorithm: 'sliding-counter', windowMs: 10_000, cells: 6 },
  'fixed-window': { algorithm: 'fixed-window', windowMs: 10_000, cells: 0 },
  'leaky-bucket': { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 },
} as const;
const KIND = {
  'sliding-log': 'wl',
  'sliding-counter': 'wc',
  'fixed-window': 'wf',
  'leaky-bucket': 'wp',
} as const;
const EACH = Object.entries(TERMS) as [keyof typeof TERMS, TakeCall['terms']][];
const TIERS = 'on=paid reset=failed,refused keep=2592000000 step=3:10:-';

/** rate 10/s, capacity 100 (windows of 10 s: 100), a subject 0.5/s, capacity 5 (windows: 5). */
async function limiter(change: ParamChange = {}): Promise<Limiter> {
  const made = fixture.limiter();
  const numbers = { rate: 10, capacity: 100, subjectRate: 0.5, subjectCapacity: 5 };
  await seedParams(fixture.redis, made.keys, { ...numbers, ...change }, { nowUs: T0 });
  return made;
}

async function say(
  { keys }: Limiter,
  subject: string,
  rule: Partial<SubjectRule> | null,
  nowUs = T0,
) {
  const { epoch, revision } = (await storedParams(fixture.redis, keys))!;
  const full = { kind: 'limit', untilMs: -1, rate: null, capacity: null, ...rule } as SubjectRule;
  return overrideSubject(fixture.redis, {
    ...{ keys, subject, nowUs, expected: { epoch, revision } },
    override: rule && { ...full, subject, by: 'ada', why: 'tried', revision: revision + 1 },
    entry: await testEntry(fixture.redis, keys, epoch, revision + 1, 'said'),
  });
}

const asks = (made: Limiter, terms: TakeCall['terms'], more: Partial<TakeCall> = {}) => {
  const all = { rules: true, ...(terms ? { terms } : {}), ...more };
  return async (takes: Partial<TakeRequest>[], nowUs = T0) => made.call(takes, nowUs, all);
};
const kindOf = (terms: TakeCall['terms']) =>
  terms && terms.algorithm !== 'token-bucket' ? KIND[terms.algorithm] : 'b';
const many = (n: number, take: Partial<TakeRequest>) => Array.from({ length: n }, () => take);
const passed = (answers: readonly { allowed: boolean }[]) =>
  answers.filter((each) => each.allowed).length;

describe.each(EACH)('%s', (_name, terms) => {
  test('the plain script sends on, and this one sends back once nothing is known', async () => {
    const made = await limiter();
    const plain = (rules: boolean) =>
      made.call([{ subject: 'a' }], T0, { rules, ...(terms ? { terms } : {}) });
    expect((await plain(false)).status).toBe('ok');
    expect((await plain(true)).status).toBe('rules');
    await say(made, 'x', { kind: 'block' });
    expect(await plain(false)).toMatchObject({ status: 'rules', answers: [] });
    expect((await plain(true)).status).toBe('ok');
    await say(made, 'x', null);
    expect((await plain(false)).status).toBe('ok');
    expect(await storedParams(fixture.redis, made.keys)).toMatchObject({ subjectRules: 0 });
  });

  test('blocked: denied from the next call on, until its time or until a person ends it', async () => {
    const made = await limiter();
    const go = asks(made, terms);
    await say(made, 'bad', { kind: 'block', untilMs: T0 / 1000 + 2_000 });
    await say(made, 'worse', { kind: 'block' });
    const reply = await go([{ subject: 'bad' }, { subject: 'worse' }, { subject: 'a' }, {}]);
    expect(reply.answers).toMatchObject([
      { allowed: false, reason: 'blocked', remaining: 0, retryAfterMs: 2_000 },
      { allowed: false, reason: 'blocked', retryAfterMs: null },
      { allowed: true },
      { allowed: true },
    ]);
    expect(reasons(await go([{ subject: 'bad', cost: 0 }]))).toEqual(['blocked']);
    const later = await go([{ subject: 'bad' }, { subject: 'worse' }], T0 + 2 * S);
    expect(reasons(later)).toEqual(['ok', 'blocked']);
  });

  test('exempt: denied by neither bucket, takes what the total has; an open breaker and its probes bind it', async () => {
    const made = await limiter();
    const go = asks(made, terms);
    await say(made, 'vip', { kind: 'exempt' });
    const flood = (await go(many(300, { subject: 'vip' }))).answers;
    expect(flood.every(({ allowed, reason }) => allowed && reason === 'exempt')).toBe(true);
    // The total is used up, but owes nothing beyond: the others are back as its rate allows.
    const others = await go([{ subject: 'a' }, {}]);
    expect(reasons(others)).toEqual(['rate', 'rate']);
    const wait = others.answers[1]!.retryAfterMs!;
    expect(wait).toBeLessThanOrEqual(terms?.windowMs ? 12_000 : 100);
    expect(passed((await go([{}], T0 + wait * 1000)).answers)).toBe(1);
    const next = T0 + 30 * S;
    expect(passed((await go([{ subject: 'vip', cost: 150 }], next)).answers)).toBe(1);
    await changeParams(fixture.redis, made.keys, { state: 'open', openUntil: -1 }, { nowUs: next });
    expect(reasons(await go([{ subject: 'vip' }], next))).toEqual(['breaker_open']);
    await changeParams(fixture.redis, made.keys, { state: 'half-open' }, { nowUs: next });
    const probes = await go(many(5, { subject: 'vip' }), next + S);
    // In a queue what waits is in the way of probes, whoever put it there.
    expect(passed(probes.answers)).toBe(terms?.algorithm === 'leaky-bucket' ? 0 : 1);
    expect(probes.answers[1]!.reason).toBe('probe_budget');
  });

  test('past the most subjects newcomers share one bucket; those that are there keep theirs; gone ones make room', async () => {
    const made = await limiter({ subjectTerms: 'max=2', subjectRules: 1 });
    const go = asks(made, terms);
    await say(made, 'vip', { kind: 'exempt' });
    const first = await go(['a', 'b', 'c', 'd', 'a', 'vip'].map((subject) => ({ subject })));
    expect(first.answers.map((each) => each.shared ?? false)).toEqual([
      ...[false, false, true, true, false, false],
    ]);
    const crowd = await go(many(8, { subject: 'e' }));
    expect(passed(crowd.answers)).toBe(3);
    expect(crowd.answers[7]).toMatchObject({ reason: 'subject', shared: true });
    expect(passed((await go(many(8, { subject: 'b' }))).answers)).toBe(4);
    const kind = kindOf(terms);
    const { index, shared } = made.keys.crowd(kind, false);
    expect(await fixture.redis.zcard(index)).toBe(2);
    expect(await fixture.redis.pttl(index)).toBeGreaterThan(0);
    expect(await fixture.redis.exists(shared)).toBe(1);
    // A newcomer that is denied has made nothing.
    const full = terms?.windowMs ? 101 : 120;
    expect(passed((await go([{ subject: 'f', cost: full }])).answers)).toBe(0);
    // Both look due an hour later, but b's key is still there.
    const own = (subject: string) =>
      kind === 'b' ? made.keys.subjectBucket(subject) : made.keys.taken(kind, subject, false);
    await fixture.redis.del(own('a'));
    const later = T0 + 3_600 * S;
    expect(await go([{ subject: 'g' }, { subject: 'h' }], later)).toMatchObject({
      answers: [{ allowed: true }, { allowed: true, shared: true }],
    });
    expect((await fixture.redis.zrange(index, '0', '-1')).sort()).toEqual(['b', 'g']);
    expect(Number(await fixture.redis.zscore(index, 'b'))).toBeGreaterThan(later / 1000);
  });

  test('off admits all; shadow keeps its own buckets and crowd, and says what would be', async () => {
    const made = await limiter({ mode: 'shadow', subjectTerms: 'max=1', subjectRules: 1 });
    await say(made, 'bad', { kind: 'block' });
    const takes = ['a', 'b', 'bad'].map((subject) => ({ subject }));
    expect((await asks(made, terms)(takes)).status).toBe('mode');
    const reply = await asks(made, terms, { shadow: true })(takes);
    expect(reply.answers).toMatchObject([{}, { shared: true }, { reason: 'blocked' }]);
    const names = await fixture.redis.keys(`*{${made.keys.name}}*`);
    const touched = names.filter((key) => !/:(params|audit|o)$/.test(key));
    expect(touched.length).toBeGreaterThan(2);
    expect(touched.every((key) => key.includes('}:s:'))).toBe(true);
    await changeParams(fixture.redis, made.keys, { mode: 'off' }, { nowUs: T0 });
    expect(reasons(await asks(made, terms)(takes))).toEqual(['off', 'off', 'off']);
  });

  test('without params its rules do not apply: the plain script decides by the caller’s numbers', async () => {
    const made = fixture.limiter();
    const go = asks(made, terms, { fallback: FALLBACK });
    await fixture.redis.hset(made.keys.overrides, 'bad', 'block -1 - - 1');
    expect((await go([{ subject: 'bad' }])).status).toBe('rules');
    const plain = await made.call([{ subject: 'bad' }], T0, terms ? { terms } : {});
    expect(plain).toMatchObject({ status: 'ok', inForce: { managed: false } });
  });
});

describe.each(EACH.slice(1, 4))('own numbers in a window: %s', (_name, terms) => {
  test('the limit is the own rate × window, for an override and for a tier', async () => {
    const made = await limiter({
      ...terms,
      subjectRules: 1,
      subjectTerms: 'on=paid reset=failed keep=60000 step=1:-:2',
    });
    const go = asks(made, terms);
    await say(made, 'big', { rate: 3 });
    expect(passed((await go(many(60, { subject: 'big' }))).answers)).toBe(30);
    expect(passed((await go(many(60, { subject: 'a' }))).answers)).toBe(5);
    const outcome = { keys: made.keys, subject: 'b', name: 'paid', id: 'p1', nowUs: T0 };
    expect(await countOutcome(fixture.redis, outcome)).toMatchObject({ tier: 1, rate: 2 });
    expect(passed((await go(many(60, { subject: 'b' }))).answers)).toBe(20);
    expect(await fixture.redis.exists(made.keys.subjectBucket('b'))).toBe(0);
  });
});

describe('own numbers of a bucket', () => {
  test('a limiter without numbers for subjects gives this one a bucket, which begins full', async () => {
    const made = await limiter({ subjectRate: -1, subjectCapacity: 0 });
    const go = asks(made, undefined);
    expect(await say(made, 'hog', { capacity: 4 })).toMatchObject({ reason: 'invalid' });
    expect(await say(made, 'hog', { capacity: 4, rate: 2 })).toMatchObject({ status: 'ok' });
    const burst = await go(many(8, { subject: 'hog' }));
    expect(passed(burst.answers)).toBe(4);
    expect(burst.answers[7]).toMatchObject({ reason: 'subject', retryAfterMs: 500 });
    expect(passed((await go(many(8, { subject: 'hog' }), T0 + S)).answers)).toBe(2);
    expect(passed((await go(many(50, { subject: 'other' }), T0 + S)).answers)).toBe(50);
    await say(made, 'hog', null, T0 + S);
    expect(await fixture.redis.exists(made.keys.subjectBucket('hog'))).toBe(0);
  });

  test('more room is not more tokens, in either direction, and it ends by itself', async () => {
    const made = await limiter();
    const go = asks(made, undefined);
    await made.call(many(3, { subject: 'a' }), T0);
    await say(made, 'a', { capacity: 50, rate: 10, untilMs: T0 / 1000 + 10_000 });
    expect(passed((await go(many(9, { subject: 'a' }))).answers)).toBe(2);
    const life = await fixture.redis.pttl(made.keys.subjectBucket('a'));
    expect(life).toBeGreaterThan(10_000 + 10_000);
    // 10 s at 10/s, then 2 s at 0.5/s, of which the policy's bucket holds 5.
    expect(passed((await go(many(9, { subject: 'a' }), T0 + 12 * S)).answers)).toBe(5);
    expect(await fixture.redis.get(made.keys.subjectBucket('a'))).toMatch(/^-?\d/);
  });

  test('a clock that was set back brings the bucket back to now, once', async () => {
    const made = await limiter();
    const go = asks(made, undefined);
    await say(made, 'a', { capacity: 10, rate: 1 });
    expect(passed((await go(many(12, { subject: 'a' }), T0 + 1_000 * S)).answers)).toBe(10);
    expect(passed((await go([{ subject: 'a' }])).answers)).toBe(0);
    expect(passed((await go(many(5, { subject: 'a' }), T0 + 2 * S)).answers)).toBe(2);
  });

  test('garbage in place of an override or a bucket says nothing', async () => {
    const made = await limiter({ subjectRules: 1, subjectTerms: 'nonsense' });
    const words = ['block', 'limit -1 - -', 'limit x 1 1', 'grant -1 1 1', '', 'block 1 - -'];
    for (const [i, text] of words.entries()) {
      await fixture.redis.hset(made.keys.overrides, `s${i}`, text);
    }
    const takes = words.map((_text, i) => ({ subject: `s${i}` }));
    expect(passed((await asks(made, undefined)(takes)).answers)).toBe(words.length);
    await fixture.redis.set(made.keys.subjectBucket('g'), 'o:nonsense');
    expect(reasons(await asks(made, undefined)([{ subject: 'g' }]))).toEqual(['subject']);
  });
});

describe('an override is one write of a person', () => {
  test('one entry, one revision, one notice; a stale one writes nothing', async () => {
    const made = await limiter();
    const { redis } = fixture;
    const before = (await storedParams(redis, made.keys))!;
    const listener = redis.duplicate();
    const heard: string[] = [];
    listener.on('message', (_channel, text) => heard.push(text));
    await listener.subscribe(made.keys.changes);
    expect(await say(made, 'é', { kind: 'block' })).toMatchObject({
      ...{ status: 'ok', revision: before.revision + 1 },
    });
    await expect.poll(() => heard).toEqual([`${made.keys.name} 1000000 2`]);
    await listener.quit();
    expect(await redis.hkeys(made.keys.overrides)).toEqual([encodeSubject('é')]);
    const after = (await storedParams(redis, made.keys))!;
    expect(after).toEqual({ ...before, revision: 2, subjectRules: 1 });
    expect(await redis.xlen(made.keys.audit)).toBe(2);

    const stale = await overrideSubject(redis, {
      ...{ keys: made.keys, subject: 'é', override: null, nowUs: T0 },
      expected: { epoch: before.epoch, revision: before.revision },
      entry: await testEntry(redis, made.keys, before.epoch, 2, 'late'),
    });
    expect(stale).toMatchObject({ status: 'refused', reason: 'revision' });
    expect(await redis.xlen(made.keys.audit)).toBe(2);
    expect(await redis.hlen(made.keys.overrides)).toBe(1);
  });

  test('1,000 are the most; those that are over make room, and are removed by the next', async () => {
    const made = await limiter();
    const { redis } = fixture;
    const old = `block ${T0 / 1000 - 1} - - 1`;
    const fields = Array.from({ length: 1_000 }, (_each, i) => [
      `s${i}`,
      i < 3 ? old : 'block -1 - - 1',
    ]);
    await redis.hset(made.keys.overrides, ...fields.flat());
    expect(await say(made, 'new', { kind: 'block' })).toMatchObject({ status: 'ok' });
    expect(await redis.hlen(made.keys.overrides)).toBe(998);
    for (const subject of ['n2', 'n3']) await say(made, subject, { kind: 'exempt' });
    expect(await say(made, 'n4', { kind: 'block' })).toMatchObject({ reason: 'full' });
    // One that is there is changed all the same.
    expect(await say(made, 'n3', { kind: 'block' })).toMatchObject({ status: 'ok' });
  });

  test('it is refused when it says nothing, is over already, or has numbers out of reason', async () => {
    const made = await limiter();
    const wrong: Partial<SubjectRule>[] = [
      { kind: 'limit' },
      { kind: 'block', untilMs: T0 / 1000 },
      { rate: 0 },
      { rate: 1e7 },
      { capacity: 0 },
      { capacity: 1e10 },
    ];
    for (const rule of wrong)
      expect(await say(made, 'a', rule)).toMatchObject({ reason: 'invalid' });
    expect(await fixture.redis.exists(made.keys.overrides)).toBe(0);
  });
});

describe('tiers', () => {
  const paid = (made: Limiter, name: string, id: string, nowUs = T0) =>
    countOutcome(fixture.redis, { keys: made.keys, subject: 'ann', name, id, nowUs });

  test('three paid orders in a row: capacity 5 → 10; one failure: back to 5; each counted once', async () => {
    const made = await limiter({ subjectRules: 1, subjectTerms: TIERS });
    const go = asks(made, undefined);
    expect(await paid(made, 'paid', 'o1')).toMatchObject({ status: 'counted', inARow: 1, tier: 0 });
    expect(await paid(made, 'paid', 'o1')).toMatchObject({ status: 'repeated', inARow: 1 });
    await paid(made, 'paid', 'o2');
    expect(await paid(made, 'paid', 'o3')).toMatchObject({ tier: 1, capacity: 10, rate: 0.5 });
    // The room is there at once, and fills at the rate.
    expect(passed((await go(many(20, { subject: 'ann' }))).answers)).toBe(5);
    expect(passed((await go(many(20, { subject: 'ann' }), T0 + 60 * S)).answers)).toBe(10);
    expect(passed((await go(many(20, { subject: 'bob' }), T0 + 60 * S)).answers)).toBe(5);
    expect(await paid(made, 'failed', 'o4', T0 + 60 * S)).toMatchObject({
      inARow: 0,
      tier: 0,
      capacity: 5,
    });
    expect(passed((await go(many(20, { subject: 'ann' }), T0 + 120 * S)).answers)).toBe(5);
    expect(await fixture.redis.exists(made.keys.standing('ann'))).toBe(0);
  });

  test('names that no tier knows count nothing; without tiers nothing is written', async () => {
    const made = await limiter({ subjectRules: 1, subjectTerms: TIERS });
    expect(await paid(made, 'payed', 'x')).toMatchObject({ status: 'unknown', inARow: 0 });
    expect(await paid(made, 'fail', 'y')).toMatchObject({ status: 'unknown' });
    const none = await limiter();
    expect(await paid(none, 'paid', 'x')).toMatchObject({ status: 'no-tiers' });
    const left = await fixture.redis.keys(`*{${none.keys.name}}*`);
    expect(left.every((key) => /:(params|audit)$/.test(key))).toBe(true);
  });

  test('what stands of a subject and what was counted is forgotten in time', async () => {
    const made = await limiter({ subjectRules: 1, subjectTerms: TIERS });
    await paid(made, 'paid', 'o1');
    const { redis } = fixture;
    const kept = await redis.pttl(made.keys.standing('ann'));
    expect(kept).toBeGreaterThan(2_592_000_000 - 60_000);
    expect(await redis.pttl(made.keys.outcome('o1'))).toBeGreaterThan(86_400_000 - 60_000);
    expect(await redis.pttl(made.keys.outcome('o1'))).toBeLessThanOrEqual(86_400_000);
  });

  test('an override beats the tier; clearing it leaves the tier', async () => {
    const made = await limiter({ subjectRules: 1, subjectTerms: TIERS });
    const go = asks(made, undefined);
    for (const id of ['1', '2', '3']) await paid(made, 'paid', id);
    await say(made, 'ann', { capacity: 2, rate: 1 });
    expect(passed((await go(many(9, { subject: 'ann' }))).answers)).toBe(2);
    await say(made, 'ann', null);
    expect(passed((await go(many(20, { subject: 'ann' }), T0 + 60 * S)).answers)).toBe(10);
  });
});

test('memory: what each subject costs beside its bucket stays under what is stated', async () => {
  const made = await limiter({ subjectRules: 1, subjectTerms: `max=5000 ${TIERS}` });
  const go = asks(made, undefined);
  const names = Array.from({ length: 1_000 }, (_each, i) => `user:${100 + i}`);
  const { redis } = fixture;
  await changeParams(redis, made.keys, { rate: 1_000, capacity: 1_000 }, { nowUs: T0 });
  for (const from of [0, 500]) {
    await go(
      names.slice(from, from + 500).map((subject) => ({ subject })),
      T0 + 100 * S,
    );
  }
  const { index } = made.keys.crowd('b', false);
  expect(await redis.zcard(index)).toBe(1_000);
  expect(Number(await redis.memory('USAGE', index, 'SAMPLES', '0')) / 1_000).toBeLessThan(120);
  await countOutcome(redis, {
    keys: made.keys,
    subject: 'user:100',
    name: 'paid',
    id: 'x',
    nowUs: T0,
  });
  expect(Number(await redis.memory('USAGE', made.keys.standing('user:100')))).toBeLessThan(110);
  expect(Number(await redis.memory('USAGE', made.keys.outcome('x')))).toBeLessThan(110);
  for (let i = 0; i < 20; i++) await say(made, `user:${i}`, { kind: 'block' }, T0 + 100 * S);
  expect(
    Number(await redis.memory('USAGE', made.keys.overrides, 'SAMPLES', '0')) / 20,
  ).toBeLessThan(250);
});
