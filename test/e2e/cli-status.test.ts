/** `flyball status` on a real Redis with every daemon dead. */
import { describe, expect, test } from 'vitest';
import { policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { seedLimiter } from '../support/cli-run.js';
import { keys, readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);

describe('status', () => {
  test('with no daemon: what is in force, its bounds, and that nobody watches', async () => {
    const shown = await rig.run('status checkout');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^checkout {2}breaker closed {2}mode auto {2}revision 1$/m);
    expect(shown.stdout).toMatch(/rate +100\/s {2}of 20 … 400/);
    expect(shown.stdout).toMatch(/in-flight cap +24 {2}of 2 … 64/);
    expect(shown.stdout).toMatch(/binds now +unknown: no service has reported/);
    expect(shown.stdout).toMatch(/daemon +none.*the limits go to rate 100\/s, cap 24/);
    expect(shown.stdout).toMatch(/last change +r1 .*seed +params_created/);
  });

  test.each([
    [{ [FIELD.denied('in_flight')]: 40, [FIELD.denied('rate')]: 3 }, 'cap', /the in-flight cap/],
    [{ [FIELD.denied('rate')]: 40 }, 'rate', /the rate/],
    [{ [FIELD.denied('subject')]: 4 }, 'subject', /subjects' own buckets/],
    [{}, 'nothing', /binds now +nothing/],
  ])('what binds comes from what was denied: %j → %s', async (denied, binds, text) => {
    await rig.telemetry({
      ...denied,
      [FIELD.offered]: 100,
      [FIELD.admitted]: 60,
      [FIELD.process('p1')]: 1,
    });
    expect((await rig.run('status checkout')).stdout).toMatch(text);
    const [view] = parse((await rig.run('status --json')).stdout).limiters;
    expect(view).toMatchObject({
      binds,
      traffic: { offeredPerSecond: 100, admittedPerSecond: 60 },
    });
  });

  test('processes that report no completions are counted', async () => {
    const fields: Record<string, number> = { [FIELD.offered]: 5 };
    for (const id of ['a', 'b', 'c', 'd', 'e']) fields[FIELD.process(id)] = 1;
    for (const id of ['a', 'b']) fields[FIELD.reportingProcess(id)] = 1;
    await rig.telemetry(fields);
    expect((await rig.run('status checkout')).stdout).toMatch(
      /completions +rate only: 3 of 5 SDK processes report no completions/,
    );
    // Live shares lead over telemetry, and a process that is gone does not count.
    const [seconds] = await rig.redis.time();
    const now = Number(seconds) * 1e6;
    await rig.redis.hset(
      keys.inFlight,
      'a',
      `3 12 1 ${now}`,
      'b',
      `1 12 1 ${now}`,
      'old',
      `1 0 0 ${now - 4e6}`,
    );
    expect((await rig.run('status checkout')).stdout).not.toMatch(/rate only/);
  });

  test('holds with countdown and owner; an open breaker; the worst signal; a would-be value', async () => {
    await rig.run('pin checkout --rate 50 --for 2h --yes');
    await rig.run('trip checkout --hold --yes');
    const policy = policySchema.parse({
      limiter: { name: 'checkout', rate: 100, capacity: 200 },
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
      objective: { p95: { below: '250ms' }, errors: { below: '1%' } },
      mode: 'recommend',
    });
    await rig.redis.set(keys.policy, JSON.stringify(policy));
    await rig.redis.hset(keys.params, 'mode', 'recommend');
    const [seconds] = await rig.redis.time();
    const signals = {
      p95: { value: 500, fresh: true, ageMs: 100, count: 40 },
      errors: { value: 0.005, fresh: false, ageMs: 9000, count: 2, reason: 'thin' },
    };
    await rig.redis.set(
      keys.status,
      JSON.stringify({
        schema: 1,
        atMs: Number(seconds) * 1000 - 3000,
        owner: 'd',
        law: 'adaptive@1',
        file: 'drift',
        faults: ['policies/x.ts: no such field'],
        sample: { signals },
        wouldBe: { mode: 'recommend', state: 'closed', rate: 70, capacity: 200, inFlightMax: 9 },
      }),
    );
    const shown = (await rig.run('status checkout')).stdout;
    expect(shown).toMatch(/^checkout {2}breaker open {2}mode recommend/m);
    expect(shown).toMatch(/rate +0\/s.*\(50\/s is stored\)/);
    expect(shown).toMatch(/binds now +the breaker/);
    expect(shown).toMatch(/worst signal +p95 500 ms, 2 × its setpoint 250 ms/);
    expect(shown).toMatch(/no evidence +errors: thin/);
    expect(shown).toMatch(/hold +pinned until .*\((1 h 59 min|2 h) left\) by .*\(unverified\)/);
    expect((await rig.run('status')).stdout).toMatch(/ pinned until \d\d:\d\d:\d\d, open until a/);
    expect(shown).toMatch(/hold +open until a person ends it/);
    expect(shown).toMatch(/last tick [34] s ago/);
    expect(shown).toMatch(/would be +closed, rate 70\/s, cap 9 \(mode recommend/);
    expect(shown).toMatch(/differs from the adopted/);
    expect(shown).toMatch(/policy fault +policies\/x\.ts/);
    const [view] = parse((await rig.run('status checkout --json')).stdout).limiters;
    expect(view).toMatchObject({
      limiter: 'checkout',
      managed: true,
      state: 'open',
      binds: 'breaker',
      target: { rate: 50 },
      inForce: { rate: 0 },
      holds: [
        { kind: 'pinned', leftMs: expect.any(Number) },
        { kind: 'open', untilMs: null },
      ],
      worst: { signal: 'p95', ratio: 2 },
      wouldBe: { rate: 70 },
      file: 'drift',
    });
  });

  test('what the law has learnt of its loop, and that defaults hold while it is too little', async () => {
    const tell = (terms: object) =>
      rig.redis.set(keys.status, JSON.stringify({ law: 'adaptive@4', decision: { terms } }));
    await tell({ loopTrust: 0, loopChanges: 2 });
    expect((await rig.run('status checkout')).stdout).toMatch(/loop +defaults: too few changes/);
    await tell({ loopTrust: 1, loopChanges: 20, loopDeadMs: 1445, loopGain: 0.8, loopFit: 0.6 });
    const shown = (await rig.run('status checkout')).stdout.replace(/\s+/g, ' ');
    expect(shown).toContain('loop a change shows after 1.4 s, 10 % more limit is 8 % more signal');
    const [view] = parse((await rig.run('status checkout --json')).stdout).limiters;
    expect(view.loop).toMatchObject({ deadMs: 1445, gain: 0.8, fit: 0.6, changes: 20, trust: 1 });
    expect(view.loop.follows).toEqual({ cut: 1, raise: 1, headroom: 1 });
  });

  test('a limiter whose autopilot is gone is shown gliding, with the values of the glide', async () => {
    await rig.redis.hset(keys.params, { rate: 300, validUntil: Date.now() - 75_000 });
    const shown = await rig.run('status checkout');
    expect(shown.stdout).toMatch(/closed, gliding/);
    expect(shown.stdout).toMatch(/rate +(19\d|20\d)[.\d]*\/s/);
    expect(shown.stdout).toMatch(/glide to their safe values \(rate 100\/s, cap 24\)/);
  });

  test('an open breaker and a hold: why, and the command that ends each', async () => {
    expect((await rig.run('status checkout')).stdout).not.toMatch(/^ +next /m);
    await rig.run('trip checkout --yes');
    const again = await rig.run('trip checkout --yes --dry-run --json');
    expect(parse(again.stdout).sentence).toMatch(/ tripped checkout again, rate 0 until /);
    await rig.run('pin checkout --rate 80 --yes');
    const { stdout } = await rig.run('status checkout');
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      /next flyball explain checkout 3 \(why\), flyball release checkout \(ends it\), flyball reset checkout \(ends it\)/,
    );
  });

  test('all limiters as a table; missing params are unmanaged; an empty Redis says what to do', async () => {
    await seedLimiter(rig.redis, { name: 'search' });
    await rig.redis.del(limiterKeys({ name: 'search' }).params);
    const table = await rig.run('status');
    expect(table.stdout).toMatch(/^LIMITER +BREAKER +MODE/m);
    expect(table.stdout).toMatch(/^checkout +closed +auto +100\/s +24/m);
    expect(table.stdout).toMatch(/^search +unmanaged/m);
    expect((await rig.run('status search')).stdout).toMatch(
      /unmanaged.*\n.*services use the numbers/,
    );
    await rig.redis.flushall();
    expect(await rig.run('status')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/flyball run/),
    });
    expect(parse((await rig.run('status --json')).stdout)).toMatchObject({
      schema: 1,
      limiters: [],
    });
  });
});
