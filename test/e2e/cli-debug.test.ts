/** `flyball debug` on a real Redis: each thing that can decide a take is named, and nothing is written. */
import { describe, expect, test } from 'vitest';
import type { ParamChange } from '../../src/redis/params.js';
import { take } from '../../src/redis/scripts.js';
import { SAMPLE_FIELD } from '../../src/redis/tail-fields.js';
import { cli, mustRead, seedLimiter } from '../support/cli-run.js';
import { checkout, keys, readingRig } from '../support/reading-rig.js';
import { changeParams } from '../support/seed-params.js';

const rig = readingRig();
const SUBJECT = 'user:42';

async function debug(...more: string[]) {
  const run = await cli(['debug', 'checkout', SUBJECT, '--json', ...more], { env: rig.env });
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  return JSON.parse(run.stdout);
}

const step = (view: { steps: { step: string }[] }, name: string) =>
  view.steps.find((each) => each.step === name);

/** All keys with what they hold, and the server's count of commands that write. */
async function everything(): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for (const key of (await rig.redis.keys('*')).sort()) {
    all[key] = String(await rig.redis.dump(key)) + (await rig.redis.pexpiretime(key));
  }
  return all;
}

/** Anew with these params, whose buckets are full. */
async function begin(change: ParamChange) {
  await rig.redis.flushall();
  await seedLimiter(rig.redis, checkout, change);
}

async function drain(tokens: number) {
  const params = await mustRead(rig.redis, checkout);
  const reply = await take(rig.redis, {
    keys,
    takes: [{ subject: SUBJECT, cost: tokens, priority: 'critical' }],
    chargeByUs: 'any',
    fallback: params,
    shadow: false,
    rules: params.subjectRules === 1,
  });
  expect(reply.answers).toMatchObject([{ allowed: true }]);
}

describe('what decides', () => {
  test('a full bucket admits; it says what is left and that subjects have no bucket', async () => {
    const view = await debug();
    expect(view).toMatchObject({
      schema: 1,
      limiter: 'checkout',
      subject: SUBJECT,
      cost: 1,
      priority: 'default',
      revision: 1,
      keptMs: null,
      answer: { allowed: true, passes: true, enforced: true, reason: 'ok', remaining: 199 },
      recent: null,
      samples: [],
    });
    expect(view.steps.map((each: { step: string }) => each.step)).toEqual([
      ...['params', 'subject', 'breaker', 'total', 'own_bucket', 'in_flight', 'service'],
    ]);
    expect(step(view, 'own_bucket')).toMatchObject({ sentence: expect.stringContaining('none') });
  });

  test('an empty total denies by rate, with the time', async () => {
    await begin({ rate: 20, minRate: 1 });
    await drain(200);
    const view = await debug('--cost', '150');
    expect(view.answer).toMatchObject({ allowed: false, passes: false, reason: 'rate' });
    expect(view.answer.retryAfterMs).toBeGreaterThan(1000);
    expect(step(view, 'total')).toMatchObject({ verdict: 'denies' });
  });

  test('its own bucket denies, and the total does not', async () => {
    await begin({ subjectRate: 0.1, subjectCapacity: 5 });
    await drain(5);
    const view = await debug();
    expect(view.answer).toMatchObject({ reason: 'subject', passes: false });
    expect(step(view, 'own_bucket')).toMatchObject({
      verdict: 'denies',
      sentence: expect.stringMatching(/^0 tokens left, 0\.1\/s to 5 by the policy$/),
    });
    expect(step(view, 'total')).toMatchObject({ verdict: 'ok' });
    expect(view.keptMs).toBeGreaterThan(0);
    expect((await debug('--cost', '9')).answer.reason).toBe('cost_exceeds_capacity');
  });

  test('a reserve denies the lower priorities alone', async () => {
    await begin({ rate: 20, minRate: 1, reserveSheddable: 0.5 });
    await drain(150);
    expect((await debug('--priority', 'sheddable')).answer.reason).toBe('reserve');
    expect((await debug('--priority', 'critical')).answer.reason).toBe('ok');
    expect(step(await debug('--priority', 'sheddable'), 'total')).toMatchObject({
      sentence: expect.stringContaining('100 are kept from priority sheddable'),
    });
  });

  test('an open breaker, and for how long', async () => {
    await rig.run('trip checkout --for 10m --yes');
    const view = await debug();
    expect(view.answer.reason).toBe('breaker_open');
    expect(step(view, 'breaker')).toMatchObject({
      verdict: 'denies',
      sentence: expect.stringMatching(/^open for (10|9) min/),
    });
  });

  test('what a person said of it: block, exempt, numbers of its own', async () => {
    await rig.run(`subject checkout ${SUBJECT} --block --for 2h --yes --reason scraping`);
    const blocked = await debug();
    expect(blocked.answer).toMatchObject({ reason: 'blocked', passes: false });
    expect(step(blocked, 'override')).toMatchObject({
      verdict: 'denies',
      sentence: expect.stringMatching(
        /^block by .*\(unverified\) \(scraping\) in revision 2, for 2 h|1 h 59 min more$/,
      ),
    });
    await rig.run(`subject checkout ${SUBJECT} --exempt --hold --yes`);
    expect((await debug()).answer).toMatchObject({ reason: 'exempt', passes: true });
    await rig.run(`subject checkout ${SUBJECT} --capacity 3 --rate 0.1 --yes`);
    await drain(3);
    expect((await debug()).answer).toMatchObject({ reason: 'subject', passes: false });
    await rig.run(`subject checkout ${SUBJECT} --clear --yes`);
    expect((await debug()).answer.passes).toBe(true);
  });

  test('a tier that its outcomes have reached', async () => {
    await begin({
      subjectRate: 1,
      subjectCapacity: 5,
      subjectRules: 1,
      subjectTerms: 'on=paid reset=failed keep=60000 step=3:50:2',
    });
    await rig.redis.set(keys.standing(SUBJECT), '4');
    const view = await debug('--cost', '20');
    expect(view.answer.passes).toBe(true);
    expect(step(view, 'tier')).toMatchObject({
      sentence: '4 good outcomes in a row: tier from 3 (2/s capacity 50), the highest',
    });
  });

  test('fair shares: a denial that would write is told, and not written', async () => {
    await begin({
      ...{ rate: 20, minRate: 1, subjectRate: 100, subjectCapacity: 1000 },
      ...{ subjectRules: 1, subjectTerms: 'fair=1' },
    });
    await drain(200);
    const before = await everything();
    expect((await debug('--cost', '150')).answer).toMatchObject({ passes: false, reason: 'rate' });
    expect(await everything()).toEqual(before);
  });

  test('a rollout that has not reached it, and one that names it', async () => {
    await rig.run('rollout checkout --percent 0 --yes');
    const shadow = await debug();
    expect(shadow.answer).toMatchObject({ enforced: false, passes: true });
    expect(step(shadow, 'rollout')).toMatchObject({
      verdict: 'admits',
      sentence: expect.stringMatching(/in shadow \(its place is \d+ of 10000, those below 0/),
    });
    await rig.run(`rollout checkout --subject ${SUBJECT} --yes`);
    expect((await debug()).answer.enforced).toBe(true);
  });

  test.each(['sliding-log', 'sliding-counter', 'fixed-window', 'leaky-bucket'] as const)(
    'the algorithm %s',
    async (algorithm) => {
      const windowMs = algorithm === 'leaky-bucket' ? 0 : 60_000;
      const cells = algorithm === 'sliding-counter' ? 6 : 0;
      await changeParams(rig.redis, keys, { algorithm, windowMs, cells, rate: 20, minRate: 1 });
      const view = await debug();
      expect(view.answer).toMatchObject({ passes: true, reason: 'ok' });
      expect(step(view, 'total')).not.toMatchObject({
        sentence: expect.stringContaining('not known'),
      });
      expect(step(view, 'service')).toMatchObject({ sentence: expect.stringContaining(algorithm) });
    },
  );

  test('mode shadow and off, and a limiter without params', async () => {
    await changeParams(rig.redis, keys, { mode: 'shadow' });
    expect((await debug()).answer).toMatchObject({ enforced: false, passes: true });
    await changeParams(rig.redis, keys, { mode: 'off' });
    const off = await debug();
    expect(off.answer).toMatchObject({ reason: 'off', passes: true });
    expect(step(off, 'params')).toMatchObject({ verdict: 'admits' });
    await rig.redis.del(keys.params);
    expect(await debug()).toMatchObject({
      answer: null,
      revision: null,
      steps: [{ step: 'params' }],
    });
  });

  test('to which limiter a request comes', async () => {
    await changeParams(rig.redis, keys, { terms: '{"routes":["POST /api/pay"]}' });
    expect(step(await debug('--route', 'POST /api/pay?x=1'), 'route')).toMatchObject({
      verdict: 'ok',
      sentence: 'POST /api/pay?x=1 falls under POST /api/pay of this limiter',
    });
    expect(step(await debug('--route', 'get /other'), 'route')).toMatchObject({ verdict: 'look' });
  });

  test('a subject that looks otherwise than the policy names them', async () => {
    await changeParams(rig.redis, keys, { subject: 'ip:{ip}' });
    expect(step(await debug(), 'subject')).toMatchObject({
      verdict: 'look',
      sentence: expect.stringContaining('the policy names subjects ip:{ip}'),
    });
  });
});

test('it writes nothing, whatever stands', async () => {
  await begin({ subjectRate: 1, subjectCapacity: 5 });
  await rig.run(`subject checkout ${SUBJECT} --capacity 3 --yes`);
  await drain(2);
  // A mark ahead of the clock would be brought back even by a denial.
  await rig.redis.set(keys.bucket, '1e12', 'PX', 60_000);
  const before = await everything();
  for (const cost of ['1', '5', '200']) await debug('--cost', cost);
  expect(await everything()).toEqual(before);
});

test('sampled decisions of that subject alone, newest first', async () => {
  for (const [i, subject] of [SUBJECT, 'other', SUBJECT].entries()) {
    const sample = {
      ...{ atMs: 1000 + i, process: 'p1', n: i, u: 0.5, subject, hashed: false, cost: 1 },
      ...{ priority: 'default', allowed: i === 0, wouldAllow: true, reason: 'rate', limit: null },
      ...{ remaining: 3, retryAfterMs: 1, delayMs: 0, source: 'redis', epoch: 1, revision: 1 },
      ...{ state: 'closed', mode: 'auto', tookMs: 1 },
    };
    await rig.redis.xadd(keys.samples, '*', SAMPLE_FIELD, JSON.stringify(sample));
  }
  const { samples } = await debug();
  expect(samples.map((each: { atMs: number }) => each.atMs)).toEqual([1002, 1000]);
  expect(samples[0]).not.toHaveProperty('u');
});

test('for a person: steps in their order, the answer, and where to look on', async () => {
  const shown = await rig.run(`debug checkout ${SUBJECT}`);
  expect(shown.stdout).toMatch(/^checkout {2}user:42 {2}a take of 1, priority default$/m);
  expect(shown.stdout).toMatch(
    /^ 1 {2}ok {6}params {9}revision 1, mode auto, 100\/s, capacity 200$/m,
  );
  expect(shown.stdout).toMatch(/^passes {2}admitted, 199 tokens left$/m);
  expect(shown.stderr).toMatch(/flyball tail checkout --ratio 1 --for 30s/);
  expect(shown.stdout).not.toContain('\x1b');
});

test('bad arguments are answered with what is allowed', async () => {
  for (const [args, said] of [
    [['debug', 'checkout'], "missing required argument 'subject'"],
    [['debug', 'checkout', ''], 'the subject has 0 characters; 1 … 1000 are allowed.'],
    [['debug', 'checkout', 'a', '--cost', '0'], '"0" is no cost. Write tokens above 0'],
    [['debug', 'checkout', 'a', '--cost', '1e3'], '"1e3" is no cost'],
    [
      ['debug', 'checkout', 'a', '--priority', 'high'],
      'Allowed choices are critical, default, sheddable',
    ],
    [
      ['debug', 'checkout', 'a', '--route', '/pay'],
      `"/pay" is no request. Write method and path: 'POST /api/pay'.`,
    ],
    [['debug', 'chekout', 'a'], 'Did you mean checkout?'],
  ] as const) {
    const shown = await cli([...args], { env: rig.env });
    expect(shown, args.join(' ')).toMatchObject({ code: 64, stdout: '' });
    expect(shown.stderr, args.join(' ')).toContain(said);
  }
});

test('a hostile subject, and what a person said of it, are shown and not obeyed', async () => {
  const evil = 'x\x1b]0;owned\x07\u202ey';
  await cli(['subject', 'checkout', evil, '--block', '--yes', '--reason', evil], { env: rig.env });
  for (const json of [[], ['--json']]) {
    const shown = await cli(['debug', 'checkout', evil, ...json], { env: rig.env });
    expect(shown.code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
    expect(shown.stdout + shown.stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
    expect(shown.stdout).toContain('blocked');
  }
});
