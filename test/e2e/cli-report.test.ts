/** `flyball report` on a real Redis with every daemon dead: of one limiter in full, of all as a table, as JSON. */
import { describe, expect, test } from 'vitest';
import { historyText } from '../../src/redis/history-rows.js';
import { adopted } from '../support/cli-rows.js';
import { cli, seedLimiter } from '../support/cli-run.js';
import { type Step, storeLog, THREE } from '../support/episode-entries.js';
import { madeUp } from '../support/history.js';
import { checkout, keys, readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);
const log = (steps: Step[], agoS: number, limiter = checkout) =>
  storeLog(rig.redis, limiter, steps, agoS);

/** One minute of the history, so many minutes ago. */
async function minute(ago: number, row: { offered: number; denied: object; missedS: number }) {
  const at = Math.floor(Date.now() / 60_000) - ago;
  const { offered, denied, missedS } = row;
  const counts = [offered, offered - 10, denied, offered - 10, 0, 0];
  const list = [
    1,
    60,
    0,
    missedS,
    0,
    'closed',
    100,
    200,
    24,
    ...counts,
    ...Array(11).fill(null),
    [],
  ];
  await rig.redis.hset(keys.history, String(at), JSON.stringify(list));
}

describe('one limiter', () => {
  test('changes, episodes, time at the bounds, trips, refusals, the objective', async () => {
    await log(THREE, 3600);
    await minute(30, { offered: 6000, denied: { rate: 100, subject: 20 }, missedS: 12 });
    await minute(20, { offered: 6000, denied: { rate: 300 }, missedS: 0 });
    await minute(60 * 30, { offered: 9, denied: { rate: 9 }, missedS: 60 });
    const shown = await rig.run('report checkout');
    expect(shown).toMatchObject({ code: 0 });
    const text = shown.stdout.replace(/\n {17}(?=\S)/g, ' ');
    expect(text).toMatch(/^checkout {2}\S+ \S+ … \S+ \S+ \(1 d\) {2}mode auto, breaker closed$/m);
    expect(text).toMatch(
      /^ {2}changes {8}5 \(4 by the autopilot, 1 by persons\) in 3 episodes: law_cut 1, law_raise 1, breaker_trip 1, /m,
    );
    expect(text).toMatch(/^ {2}at the floor {3}never$/m);
    expect(text).toMatch(/^ {2}breaker {8}opened 1 time, stood open or half-open for 30 s$/m);
    expect(text).toMatch(
      /^ {2}denied {9}420 of 12,000 requests \(3\.5 %\): rate 400, subject 20; most in the minute from \d\d:\d\d: 300$/m,
    );
    expect(text).toMatch(
      /^ {2}objective {6}missed for 12 s, 10 % of the 2 min that a daemon watched with traffic$/m,
    );
    expect(text).toMatch(/^ {2}suggested {6}nothing: /m);
    expect(text).toMatch(/ {2}p99 612 ms; 400 → 200\/s; 2 changes; back at 390$/m);
  });

  test('as JSON, with every field', async () => {
    await log(THREE, 3600);
    await minute(30, { offered: 6000, denied: { rate: 100 }, missedS: 12 });
    const answer = parse((await rig.run('report checkout --since 90m --json')).stdout);
    expect(answer).toMatchObject({
      schema: 1,
      sinceMs: expect.any(Number),
      atMs: expect.any(Number),
    });
    const [view] = answer.limiters;
    expect(Object.keys(view).sort()).toEqual(
      [
        ...[
          'limiter',
          'mode',
          'state',
          'sinceMs',
          'atMs',
          'inForce',
          'bounds',
          'changes',
          'episodes',
        ],
        ...['more', 'knownMs', 'atFloorMs', 'atCeilingMs', 'trips', 'openMs', 'traffic', 'held'],
        ...['ceilings', 'wouldBe', 'suggested'],
      ].sort(),
    );
    expect(view).toMatchObject({
      changes: { total: 1, autopilot: 0, persons: 1, byReason: { pin: 1 } },
      episodes: [{ sentence: 'pin by alice@db (unverified) (sale); 390 → 100/s' }],
      inForce: { rate: 100, capacity: 200, inFlightMax: 24 },
      bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
      traffic: {
        ...{ offered: 6000, admitted: 5990, denied: 100, byReason: { rate: 100 }, shed: 0 },
        ...{ objectiveMissedS: 12, watchedS: 60, minutes: 1, worstMinute: { denied: 100 } },
      },
      wouldBe: null,
      suggested: { status: 'refused', sentence: expect.any(String) },
    });
    // Half an hour before the pin the rate was 390, and since then 100: neither is a bound.
    expect(view).toMatchObject({ atFloorMs: 0, atCeilingMs: 0 });
    expect(view.knownMs).toBe(view.atMs - view.sinceMs);
  });

  test('a bound that holds the law is named, with what would be', async () => {
    await log(
      [
        {
          s: 0,
          to: { rate: 400 },
          reason: 'law_raise',
          sentence:
            'the limits bind; rate ceiling 390 → 400/s; would be rate 520/s: guard bounds held the rest (rate kept in 20 … 400/s).',
          detail: { heldBack: { guards: ['bounds'], rate: 520 } },
        },
      ],
      60,
    );
    const shown = await rig.run('report checkout');
    expect(shown.stdout).toMatch(/^ {2}bound {10}would be 520; bounds\.rate\.max holds 400$/m);
    expect(shown.stdout).toMatch(/^ {2}held back {6}bounds 1 time$/m);
    expect(shown.stdout).toMatch(/^ {2}at the ceiling \d+ min.* \(100 %\)$/m);
  });

  test('recommend: where the law would have the limits', async () => {
    await rig.redis.hset(keys.params, 'mode', 'recommend');
    const wouldBe = { mode: 'recommend', state: 'closed', rate: 70, capacity: 200, inFlightMax: 9 };
    await rig.redis.set(keys.status, JSON.stringify({ wouldBe }));
    expect((await rig.run('report checkout')).stdout).toMatch(
      /^ {2}would be {7}closed, rate 70\/s, cap 9 \(mode recommend: not applied\)$/m,
    );
  });
});

describe('what a history of days suggests', () => {
  const world = () => ({ redis: rig.redis, env: rig.env, folder: '' });

  async function threeDays(): Promise<void> {
    await adopted(world(), { tune: { slotsPerInstance: 1, instances: 8 } });
    const rows = madeUp({ days: 3, mean: 400, swing: 0.9, p999Ms: 20 });
    const last = Math.floor(Date.now() / 60_000) - 1;
    const at = (i: number) => String(last - (rows.length - 1 - i));
    await rig.redis.hset(keys.history, ...rows.flatMap((row, i) => [at(i), historyText(row)]));
  }

  test('rate, capacity and cap are numbers, with the bound that holds them, as text and as JSON', async () => {
    await threeDays();
    const json = parse((await rig.run('report checkout --json')).stdout);
    const { suggested, ceilings } = json.limiters[0];
    expect(suggested).toEqual({
      status: 'ready',
      rate: {
        ...{ value: 400, inForce: 100, binds: 'bounds.rate.max', why: expect.any(String) },
        wanted: expect.any(Number),
      },
      capacity: {
        ...{ value: expect.any(Number), wanted: expect.any(Number), inForce: 200 },
        ...{ binds: expect.any(String), why: expect.any(String) },
      },
      inFlightMax: {
        ...{ value: expect.any(Number), wanted: expect.any(Number), inForce: 24 },
        ...{ binds: expect.any(String), why: expect.any(String) },
      },
    });
    const { rate, capacity, inFlightMax } = suggested;
    // So many good answers a second had the wave at its top.
    expect(rate.wanted).toBeGreaterThan(600);
    expect(rate.wanted).toBeLessThan(800);
    // A second of the rate, or more; the cap lies at the knee of the made-up curve.
    expect(capacity.value).toBeGreaterThanOrEqual(rate.value);
    expect(capacity.value).toBeLessThanOrEqual(1000);
    expect(inFlightMax.value).toBeGreaterThan(24);
    expect(inFlightMax.value).toBeLessThanOrEqual(64);
    expect(ceilings).toContainEqual({
      ...{ bound: 'bounds.rate.max', wouldBe: rate.wanted, holds: 400 },
      ...{ by: 'history', setBy: null },
    });
    const text = (await rig.run('report checkout')).stdout.replace(/\n {17}(?=\S)/g, ' ');
    expect(text).toMatch(/^ {2}suggested {6}rate 400\/s \(in force 100\/s\): \S/m);
    expect(text).toContain(
      `capacity ${capacity.value} tokens (in force 200 tokens): ${capacity.why}`,
    );
    expect(text).toContain(`in-flight cap ${inFlightMax.value} (in force 24): ${inFlightMax.why}`);
    expect(text).toContain('flyball tune checkout shows their bands');
    expect(text).toMatch(
      /^ {2}bound {10}would be [\d.]+; bounds\.rate\.max holds 400 \(by its history\)$/m,
    );
  });
});

describe('all limiters', () => {
  test('a table; one that cannot be read is named and left out', async () => {
    const search = { name: 'search' };
    await seedLimiter(rig.redis, search);
    await log(THREE, 3600, search);
    const shown = await rig.run('report --since 2d');
    expect(shown.stdout).toMatch(
      /^LIMITER +CHANGES +EPISODES +FLOOR +CEILING +TRIPS +OPEN +DENIED +MISSED +BOUND$/m,
    );
    expect(shown.stdout).toMatch(/^checkout +1 +1 +– +– +0 +– +unknown +unknown$/m);
    expect(shown.stdout).toMatch(/^search +5 +3 +– +.* +1 +30 s +unknown +unknown$/m);
    expect(shown.stderr).toContain('flyball report checkout');
    await rig.redis.del(keys.params);
    const one = await rig.run('report');
    expect(one).toMatchObject({ code: 1, stderr: expect.stringContaining('checkout is left out') });
    expect(one.stdout).toMatch(/^search /m);
    expect(parse((await rig.run('report --json')).stdout).limiters).toHaveLength(1);
  });

  test('no limiter at all; a limiter without params; words that are none', async () => {
    await rig.redis.del(keys.params);
    expect(await rig.run('report checkout')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('FLYBALL_E_LIMITER_UNMANAGED'),
    });
    await rig.redis.flushall();
    expect(await rig.run('report')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('flyball run'),
    });
    for (const [args, said] of [
      ['report --since 2999-01-01', '2999-01-01 00:00:00 is still to come'],
      ['report --since 2026-02-30', '"2026-02-30" is no time'],
      ['report --since 3', '"3" is no time. Write a length of time back'],
      ['report chekout', 'no limiter "chekout"'],
      ['report a b', 'too many arguments'],
    ] as const) {
      const wrong = await rig.run(args);
      expect(wrong, args).toMatchObject({ code: 64, stdout: '' });
      expect(wrong.stderr, args).toContain(said);
    }
  });
});

test('hostile names, reasons and causes are shown and not obeyed', async () => {
  const evil = 'x\x1b]0;owned\x07\u202ey';
  await log(
    [
      { s: 0, by: evil, reason: 'pin', to: { rate: 5 }, detail: { why: evil } },
      { s: 9, to: { rate: 4 }, reason: evil, sentence: evil },
    ],
    60,
  );
  await minute(3, { offered: 50, denied: { [evil]: 9 }, missedS: 0 });
  for (const args of [
    ['report', 'checkout'],
    ['report'],
    ['report', 'checkout', '--json'],
    ['audit'],
    ['audit', 'checkout', '--csv'],
  ]) {
    const shown = await cli(args, { env: rig.env });
    expect(shown.code, args.join(' ')).toBe(0);
    const text = args.includes('--csv') ? shown.stdout.replaceAll('\r\n', '\n') : shown.stdout;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
    expect(text + shown.stderr, args.join(' ')).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  }
});
