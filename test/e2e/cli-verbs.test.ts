/** The changing commands on a real Redis with every daemon dead: result, JSON, dry run, question, hold, refusals. */
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import type { Planner, VerbPlan } from '../../src/actuate/verbs/plan.js';
import { effective } from '../../src/redis/effective.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { lease, take } from '../../src/redis/scripts.js';
import { cli, lawWrite, mustRead, seedLimiter } from '../support/cli-run.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const HOUR = 3_600_000;
let redis: Redis;
let env: NodeJS.ProcessEnv;
let run: RedisBench['run'];

redisBench(async (bench) => {
  ({ redis, env, run } = bench);
  await seedLimiter(redis, checkout);
});

async function owner() {
  const reply = await lease(redis, {
    keys: limiterKeys(checkout),
    op: 'acquire',
    owner: 'd1',
    leaseMs: 5000,
  });
  if (reply.status !== 'held') throw new Error('no lease');
  return { kind: 'lease' as const, owner: 'd1', token: reply.token };
}

describe('C91: a rollback is not undone by the next tick', () => {
  test('it holds against the law, is one entry naming actor and hold, and is released bumplessly', async () => {
    const authority = await owner();
    for (const rate of [110, 120, 130, 140]) {
      expect(await lawWrite(redis, checkout, authority, { rate })).toMatchObject({ status: 'ok' });
    }
    const done = await run('rollback checkout 3 --yes --reason too_fast --json');
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({
      schema: 1,
      limiter: 'checkout',
      verb: 'rollback',
      status: 'done',
      revision: 6,
      before: { rate: 140 },
      after: { rate: 120 },
      hold: { untilMs: expect.any(Number) },
    });

    // The next ticks of the law are refused, by hold and not by luck.
    for (const rate of [150, 20]) {
      expect(await lawWrite(redis, checkout, authority, { rate })).toMatchObject({
        status: 'refused',
        reason: 'held',
      });
    }
    const params = await mustRead(redis, checkout);
    expect(params).toMatchObject({ rate: 120, revision: 6, mode: 'auto' });
    expect(params.pinnedUntil - Date.now()).toBeGreaterThan(HOUR - 60_000);
    expect(params.heldBy).toMatch(/.+@.+ \(unverified\)/);

    const { entries } = await readEntries(redis, checkout, { reason: 'rollback' });
    expect(entries).toHaveLength(1);
    expect(entries[0]!.body).toMatchObject({
      kind: 'change',
      revision: 6,
      actor: { kind: 'person', name: params.heldBy },
      detail: { toRevision: 3, until: params.pinnedUntil, why: 'too_fast' },
    });
    expect(entries[0]!.body.sentence).toMatch(/held until \d{4}-.*Z\. Reason: too_fast$/);

    expect((await run('release checkout --yes')).code).toBe(0);
    expect(await mustRead(redis, checkout)).toMatchObject({
      rate: 120,
      pinnedUntil: 0,
      heldBy: '',
    });
    expect(await lawWrite(redis, checkout, authority, { rate: 125 })).toMatchObject({
      status: 'ok',
    });
    expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
  });

  test('it wins against a law that writes all the time', async () => {
    const authority = await owner();
    await lawWrite(redis, checkout, authority, { rate: 110 });
    let stop = false;
    const law = (async () => {
      for (let i = 0; !stop; i++)
        await lawWrite(redis, checkout, authority, { rate: 100 + (i % 50) });
    })();
    const done = await run('rollback checkout 1 --yes');
    stop = true;
    await law;
    expect(done.code).toBe(0);
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 100 });
    expect((await mustRead(redis, checkout)).pinnedUntil).toBeGreaterThan(Date.now());
    expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
  });

  test('--for and --hold set how long', async () => {
    await run('rollback checkout 1 --yes --for 2h');
    expect((await mustRead(redis, checkout)).pinnedUntil - Date.now()).toBeGreaterThan(1.9 * HOUR);
    await run('rollback checkout 1 --yes --hold');
    expect((await mustRead(redis, checkout)).pinnedUntil).toBe(-1);
  });
});

describe('every verb', () => {
  test.each([
    ['pin checkout --rate 80 --in-flight 8', { rate: 80, inFlightMax: 8 }],
    ['freeze checkout', { rate: 100 }],
    ['trip checkout --hold', { state: 'open', openUntil: -1, generation: 1, rate: 100 }],
    ['rollback checkout 1', { rate: 100 }],
  ])('%s --yes writes one revision and one entry', async (args, wanted) => {
    const done = await run(`${args} --yes`);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/^done {2}revision 2 /) });
    expect(await mustRead(redis, checkout)).toMatchObject({ ...wanted, revision: 2 });
    const { entries } = await readEntries(redis, checkout, { revision: 2 });
    expect(entries).toHaveLength(1);
  });

  test.each(['pin checkout --rate 80', 'freeze checkout', 'trip checkout', 'rollback checkout 1'])(
    '%s --dry-run shows now → then on stdout and writes nothing',
    async (args) => {
      const before = await redis.dump(limiterKeys(checkout).params);
      const dry = await run(`${args} --dry-run`);
      expect(dry.code).toBe(0);
      expect(dry.stdout).toMatch(/checkout at revision 1, mode auto/);
      expect(dry.stderr).toMatch(/nothing was written/);
      const json = await run(`${args} -n --json`);
      expect(JSON.parse(json.stdout)).toMatchObject({ schema: 1, status: 'dry_run', revision: 1 });
      expect(await redis.dump(limiterKeys(checkout).params)).toEqual(before);
      expect(await redis.xlen(limiterKeys(checkout).audit)).toBe(1);
    },
  );

  test.each([
    'pin checkout --rate 80',
    'release checkout',
    'freeze checkout',
    'thaw checkout',
    'trip checkout',
    'reset checkout',
    'rollback checkout 1',
  ])('%s without a terminal and without --yes is refused and names the flag', async (args) => {
    const refused = await run(args);
    expect(refused).toMatchObject({ code: 64, stdout: '' });
    expect(refused.stderr).toMatch(/FLYBALL_E_CLI_CONFIRM: .*Add --yes to do it, or --dry-run/);
    expect(await redis.xlen(limiterKeys(checkout).audit)).toBe(1);
  });

  test.each(['release checkout', 'thaw checkout', 'reset checkout'])(
    '%s with nothing to end says so, writes nothing and succeeds',
    async (args) => {
      const done = await run(`${args} --yes`);
      expect(done).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/not pinned|not frozen|no trip/),
      });
      expect(JSON.parse((await run(`${args} --yes --json`)).stdout)).toMatchObject({
        schema: 1,
        status: 'nothing',
      });
      expect(await redis.xlen(limiterKeys(checkout).audit)).toBe(1);
    },
  );

  test('at a terminal it shows the change, asks, and does what is answered', async () => {
    const no = await run('pin checkout --rate 80', 'n\n');
    expect(no.code).toBe(1);
    expect(no.stderr).toMatch(/rate +100\/s +→ {2}80\/s/);
    expect(no.stderr).toMatch(/Nothing was changed/);
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 100, revision: 1 });
    const yes = await run('pin checkout --rate 80', 'y\n');
    expect(yes.code).toBe(0);
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 80, revision: 2 });
    const never = await run('release checkout --no-input', 'y\n');
    expect(never.code).toBe(64);
  });

  test('freeze holds against the law, thaw lets it go on', async () => {
    const authority = await owner();
    await run('freeze checkout --yes');
    expect(await lawWrite(redis, checkout, authority, { rate: 90 })).toMatchObject({
      reason: 'held',
    });
    await run('thaw checkout --yes');
    expect(await lawWrite(redis, checkout, authority, { rate: 90 })).toMatchObject({
      status: 'ok',
    });
  });

  test('a trip denies at once; reset comes back with empty buckets, never a burst', async () => {
    const ask = () =>
      take(redis, {
        keys: limiterKeys(checkout),
        takes: Array.from({ length: 50 }, () => ({
          subject: null,
          cost: 1,
          priority: 'default' as const,
        })),
        chargeByUs: 'any',
        shadow: false,
        fallback: { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 },
      });
    expect((await ask()).answers.filter((a) => a.allowed)).toHaveLength(50);
    await run('trip checkout --hold --yes');
    expect((await ask()).answers.map((a) => a.reason)).toEqual(Array(50).fill('breaker_open'));
    await run('reset checkout --yes');
    expect((await mustRead(redis, checkout)).state).toBe('closed');
    // 100/s from empty: what a few ms have paid, far from the 150 that were left in the bucket.
    expect((await ask()).answers.filter((a) => a.allowed).length).toBeLessThan(40);
  });

  test('a pin under a trip comes back by itself when the open time has passed', async () => {
    await run('trip checkout --for 1s --yes');
    await run('pin checkout --rate 40 --yes');
    expect(await mustRead(redis, checkout)).toMatchObject({ state: 'open', rate: 40 });
  });

  test('a hold of the breaker is set by --hold-breaker and ends with the hold', async () => {
    await run('pin checkout --rate 40 --hold-breaker --yes');
    expect((await mustRead(redis, checkout)).holdBreaker).toBe(1);
    await run('release checkout --yes');
    expect((await mustRead(redis, checkout)).holdBreaker).toBe(0);
  });
});

describe('I11: the autopilot is lost', () => {
  const soon = { lostAfterMs: 200, lostOverMs: 200, safeRate: 50, safeInFlight: 6 };
  const view = async () =>
    JSON.parse((await run('status checkout --json')).stdout).limiters[0] as {
      gliding: boolean;
      inForce: { rate: number; inFlightMax: number };
    };

  test('limits glide to the safe values; then rollback and pin work and hold; released, they glide again', async () => {
    await redis.flushall();
    await seedLimiter(redis, checkout, soon);
    await expect.poll(view).toMatchObject({ gliding: true, inForce: { rate: 50, inFlightMax: 6 } });

    await run('rollback checkout 1 --yes');
    await run('pin checkout --in-flight 9 --yes');
    // Far past the time that a glide would have taken.
    const [params, nowMs] = [await mustRead(redis, checkout), Date.now() + 60_000];
    expect(effective(params, nowMs)).toMatchObject({ gliding: false, rate: 100, inFlightMax: 9 });

    const released = await run('release checkout --yes');
    expect(released.stderr).toMatch(
      /No daemon is alive: after 0.2 s the limits glide to their safe values/,
    );
    const after = await mustRead(redis, checkout);
    expect(effective(after, after.changedAt / 1000)).toMatchObject({ gliding: false, rate: 100 });
    await expect.poll(view).toMatchObject({ gliding: true, inForce: { rate: 50, inFlightMax: 6 } });
  });

  test('a freeze in mid-air keeps what the glide had reached', async () => {
    await redis.flushall();
    await seedLimiter(redis, checkout, { ...soon, lostOverMs: 600_000 });
    await expect.poll(async () => (await view()).gliding).toBe(true);
    await run('freeze checkout --yes');
    const params = await mustRead(redis, checkout);
    expect(params.rate).toBeLessThan(100);
    expect(params.rate).toBeGreaterThan(90);
    expect(effective(params, Date.now() + 60_000).rate).toBe(params.rate);
  });
});

describe('what moved while a person was reading', () => {
  const apply = (planner: Planner, meanwhile: (asked: number) => Promise<unknown>) => {
    const previews: VerbPlan[] = [];
    const outcome = applyVerb(redis, checkout, planner, {
      actor: 'ada@host (unverified)',
      dryRun: false,
      nowMs: Date.now,
      async approve(plan) {
        previews.push(plan);
        await meanwhile(previews.length);
        return true;
      },
    });
    return { previews, outcome };
  };

  test('a moved rate does not bring a pin to ask again: its own numbers stand', async () => {
    const authority = await owner();
    const { previews, outcome } = apply(pin({ rate: 50 }, HOUR), () =>
      lawWrite(redis, checkout, authority, { rate: 130 }),
    );
    expect(await outcome).toMatchObject({ status: 'done', revision: 3 });
    expect(previews).toHaveLength(1);
    const { entries } = await readEntries(redis, checkout, { revision: 3 });
    expect(entries[0]!.body).toMatchObject({ before: { rate: 130 }, after: { rate: 50 } });
  });

  test('a breaker that opened meanwhile does: the person sees the new plan', async () => {
    const { previews, outcome } = apply(pin({ rate: 50 }, HOUR), async (asked) => {
      if (asked === 1) await run('trip checkout --hold --yes');
    });
    expect(await outcome).toMatchObject({ status: 'done' });
    expect(previews.map((plan) => plan.after.state)).toEqual(['closed', 'open']);
    expect(await mustRead(redis, checkout)).toMatchObject({ state: 'open', rate: 50 });
  });

  test("another person's hold made meanwhile is shown before it is replaced", async () => {
    const { previews, outcome } = apply(pin({ rate: 50 }, HOUR), async (asked) => {
      if (asked === 1) await run('pin checkout --rate 30 --for 3h --yes');
    });
    expect(await outcome).toMatchObject({ status: 'done', revision: 3 });
    expect(previews.map((plan) => plan.before.rate)).toEqual([100, 30]);
  });

  test('someone who writes without end is an error, and nothing was written', async () => {
    let n = 0;
    const planner: Planner = (facts) => {
      const plan = pin({ rate: 50 }, HOUR)(facts);
      return { ...plan, after: { ...(plan as VerbPlan).after, rate: n++ } } as VerbPlan;
    };
    const { outcome } = apply(planner, async () => {});
    await expect(outcome).rejects.toThrow(/changed by others again and again.*Nothing was written/);
    expect(await redis.xlen(limiterKeys(checkout).audit)).toBe(1);
  });
});

describe('what is wrong is told with the mend', () => {
  test.each([
    [
      'pin chekout --rate 80 --yes',
      64,
      /no limiter "chekout" .*Did you mean checkout\? Known: checkout\./,
    ],
    ['pin CheckOut! --rate 80 --yes', 64, /limiter name "CheckOut!" is not allowed\. Use 1 to 64/],
    ['pin checkout --rate 900 --yes', 64, /--rate is 900; a pin may be 0 … 400/],
    ['pin checkout --rate 10/s --yes', 64, /"10\/s" is not a number.*rates are per second/],
    ['pin checkout --yes', 64, /give --rate, --in-flight or both/],
    ['pin checkout --rate 80 --for 10 --yes', 64, /"10" has no unit\. Write 30s, 15m, 2h/],
    ['pin checkout --rate 80 --for 1h --hold --yes', 64, /--hold.*cannot be used with.*--for/],
    ['rollback checkout 77 --yes', 1, /no audit entry for revision 77.*flyball audit checkout/],
    ['rollback checkout x --yes', 64, /"x" is not a revision/],
    ['rollback checkout --yes', 64, /say what to go back to/],
    ['pni checkout', 64, /unknown command 'pni'.*Did you mean pin\?/],
    ['pin checkout --ratte 5', 64, /unknown option '--ratte'.*Did you mean --rate\?/],
    ['status a b', 64, /too many arguments/],
    ['status --prefix a{b}', 64, /key prefix is "a\{b\}"\. Use 1 to 64 letters/],
  ])('%s → exit %i', async (args, code, message) => {
    const failed = await run(args);
    expect(failed.stderr).toMatch(message);
    expect(failed).toMatchObject({ code, stdout: '' });
    expect(failed.stderr.match(/error:/g)).toHaveLength(1);
    expect(await redis.xlen(limiterKeys(checkout).audit)).toBe(1);
    const json = JSON.parse((await run(`${args} --json`)).stdout);
    expect(json).toMatchObject({
      schema: 1,
      error: { code: expect.stringMatching(/^FLYBALL_E_/) },
    });
  });

  test('params that are missing are told as unmanaged', async () => {
    await redis.del(limiterKeys(checkout).params);
    const failed = await run('pin checkout --rate 80 --yes');
    expect(failed).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/FLYBALL_E_LIMITER_UNMANAGED.*flyball run/),
    });
  });

  test('another prefix is another world', async () => {
    await seedLimiter(redis, { name: 'search', prefix: 'staging' });
    expect((await run('pin search --rate 50 --yes')).code).toBe(64);
    expect((await run('pin search --rate 50 --yes --prefix staging')).code).toBe(0);
    const shown = await cli(['status'], { env: { ...env, FLYBALL_PREFIX: 'staging' } });
    expect(shown.stdout).toMatch(/^search/m);
    expect(shown.stdout).not.toMatch(/^checkout/m);
  });

  test('a limiter in a group is found through the registry', async () => {
    await seedLimiter(redis, { name: 'refund', group: 'pay' });
    expect((await run('pin refund --rate 50 --yes')).code).toBe(0);
    expect(await mustRead(redis, { name: 'refund', group: 'pay' })).toMatchObject({ rate: 50 });
  });
});
