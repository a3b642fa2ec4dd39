/** The ladder of trust on a real Redis, every daemon dead: `promote` on evidence, `approve` of one recommendation. */
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { writeNote } from '../../src/actuate/actuator.js';
import { readEntries } from '../../src/actuate/audit.js';
import type { EntryValues } from '../../src/actuate/entry.js';
import { parseByPerson } from '../../src/redis/by-person.js';
import { type HistoryRow, writeHistoryRow } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { mustRead } from '../support/cli-run.js';
import { adoptBy, loadedPolicy } from '../support/policies.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
const LAW = { control: { law: 'aimd' } } as const;
let redis: Redis;
let run: RedisBench['run'];

redisBench((bench) => {
  ({ redis, run } = bench);
});

const params = () => mustRead(redis, checkout);
const newest = async () => (await readEntries(redis, checkout, { limit: 1 })).entries[0]!;

/** Minutes that are over by now and yet after the adoption: the source says it was adopted long ago. */
async function watched(hours: number, freshShare: number, change: Partial<HistoryRow> = {}) {
  const [[id, fields]] = (await redis.xrange(keys.sources, '-', '+')) as [[string, string[]]];
  await redis.del(keys.sources);
  const agoMs = Number.parseInt(id, 10) - 48 * 3_600_000;
  await redis.xadd(keys.sources, `${agoMs}-0`, ...fields);
  const last = Math.floor(Date.now() / 60_000) - 1;
  const minutes = Array.from({ length: hours * 60 }, (_, i) =>
    writeHistoryRow(redis, keys, {
      ...{ minute: last - i, watchedS: 60, notClosedS: 0, overloadS: 0, driftS: 0 },
      ...{ state: 'closed', rate: 100, capacity: 200, inFlightMax: 24, offered: 3000 },
      ...{ admitted: 3000, denied: {}, ok: 3000, failed: 0, cancelled: 0 },
      ...{ meanMs: 10, p50Ms: 10, p95Ms: 10, p99Ms: 10, p999Ms: 10, inFlight: 1 },
      ...{ dbWaitMs: null, dbWaitP95Ms: null, poolWaiting: null, processes: 1, reporting: 1 },
      ...{ points: [], freshS: 60 * freshShare },
      ...change,
    }),
  );
  await Promise.all(minutes);
}

async function note(after: Partial<EntryValues>, more: { reason?: string; law?: boolean } = {}) {
  const { mode, state, rate, capacity, inFlightMax, ...now } = await params();
  const before: EntryValues = { mode, state, rate, capacity, inFlightMax };
  await writeNote(
    redis,
    checkout,
    {
      expected: { epoch: now.epoch, revision: now.revision },
      actor: { kind: 'autopilot', name: 'd1' },
      reason: more.reason ?? 'law_cut',
      sentence: 'p95 310 ms > 250 ms for 12 s.',
      before,
      after: { ...before, ...after },
      policyHash: now.policyHash,
      ...(more.law === false ? {} : { law: 'aimd@1' }),
    },
    { nowMs: Date.now() },
  );
}

describe('promote', () => {
  test('prints the evidence, refuses under 24 h, and takes a reason instead', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    await watched(2, 1);
    const early = await run(['promote', 'checkout', '--to', 'auto', '--yes', '--json']);
    expect(early.code).toBe(1);
    expect(JSON.parse(early.stdout).error).toMatchObject({
      code: 'FLYBALL_E_PROMOTE_EVIDENCE',
      message: expect.stringMatching(
        /not ready for auto: watched 2 h of 24 h\. Wait, or go on anyway and say why/,
      ),
    });
    expect(early.stderr).toMatch(
      /Evidence: watched 2 h, 100 % of the readings fresh; the law would/,
    );
    const anyway = ['promote', 'checkout', '--to', 'auto', '--anyway', '--yes', '--json'];
    expect(await run(anyway)).toMatchObject({ code: 64 });
    const done = await run([...anyway, '--reason', 'load test']);
    expect(JSON.parse(done.stdout)).toMatchObject({
      ...{ schema: 1, verb: 'promote', status: 'done', revision: 2 },
      ...{ before: { mode: 'recommend', rate: 100 }, after: { mode: 'auto', rate: 100 } },
      evidence: { hours: 2, fresh: 1, cuts: 0, trips: 0, denied: 0 },
    });
    expect((await newest()).body.detail).toMatchObject({ anyway: true, why: 'load test' });
  });

  test('refuses under 99 % fresh, and where nobody knows how many were', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    await watched(25, 0.985);
    const stale = await run(['promote', 'checkout', '--to', 'auto', '--yes']);
    expect(stale.stderr).toMatch(/98\.5 % of the readings were fresh, 99 % are needed/);
    await redis.del(keys.history);
    await watched(25, 1, { freshS: undefined } as unknown as Partial<HistoryRow>);
    const unknown = await run(['promote', 'checkout', '--to', 'auto', '--yes']);
    expect(unknown.stderr).toMatch(/how many readings were fresh is not known/);
    expect((await params()).mode).toBe('recommend');
  });

  test('with enough evidence it is one revision; it stands until the file changes its mode', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    await watched(25, 0.995, { admitted: 1200 });
    await note({ rate: 15 });
    await note({ rate: 10, state: 'open' }, { reason: 'breaker_trip' });
    const done = await run(['promote', 'checkout', '--to', 'auto'], 'y\n');
    expect(done.code).toBe(0);
    expect(done.stderr).toMatch(
      /cut once, tripped once, and its rate denied 0 of 1800000 requests/,
    );
    expect(done.stderr).toMatch(/mode {10}recommend {2}→ {2}auto/);
    expect(done.stderr).toMatch(/to make it the file's, write mode: 'auto'/);
    expect(await params()).toMatchObject({ mode: 'auto', rate: 100, revision: 2 });

    // Another change of the file leaves it; one of its mode takes it back.
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, owner: 'pay' }));
    expect(await params()).toMatchObject({ mode: 'auto', revision: 3 });
    expect((await newest()).body.sentence).toMatch(
      /mode auto stays, as \S+@\S+ \(unverified\) set it/,
    );
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, mode: 'shadow' }));
    expect(await params()).toMatchObject({ mode: 'shadow', byPerson: '' });
  });

  test('down needs no evidence and brings the policy’s numbers; --release is what the file says', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, mode: 'auto' }));
    await redis.hset(keys.params, 'rate', '64');
    const down = await run(['promote', 'checkout', '--to', 'recommend', '--yes']);
    expect(down.stdout).toMatch(/moved checkout down: mode auto → recommend, rate 64 → 100\/s\./);
    expect(await params()).toMatchObject({ mode: 'recommend', rate: 100 });
    expect(await run(['promote', 'checkout', '--to', 'recommend', '--yes'])).toMatchObject({
      ...{ code: 0, stdout: expect.stringMatching(/in mode recommend already/) },
    });
    expect(await run(['promote', 'checkout', '--release', '--yes'])).toMatchObject({ code: 0 });
    expect(await params()).toMatchObject({ mode: 'auto', byPerson: '' });
  });

  test('bad arguments are told with the mend; a dry run writes nothing', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy());
    const said = async (...args: string[]) => (await run(['promote', ...args])).stderr;
    expect(await said('checkout', '--yes')).toMatch(/give --to recommend, --to auto/);
    expect(await said('checkout', '--to', 'auto', '--release', '--yes')).toMatch(/exclude each/);
    expect(await said('checkout', '--to', 'autoo', '--yes')).toMatch(/Allowed choices are shadow/);
    expect(await said('chekout', '--to', 'auto', '--yes')).toMatch(/Did you mean checkout/);
    expect(await said('checkout', '--to', 'auto')).toMatch(/no terminal to ask at/);
    const anyway = ['checkout', '--to', 'auto', '--anyway', '--reason', 'x', '--yes'];
    expect(await said(...anyway)).toMatch(/nothing would move checkout in mode auto.*control/);
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, mode: 'shadow' }));
    await run(['promote', 'checkout', '--to', 'recommend', '--anyway', '--reason', 'x', '-n']);
    expect(await params()).toMatchObject({ mode: 'shadow', revision: 2 });
  });
});

describe('approve', () => {
  test('takes the newest recommendation as one revision, which stands until the file changes that number', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    expect((await run(['approve', 'checkout', '--yes'])).stdout).toMatch(/Nothing is recommended/);
    await note({ rate: 64, inFlightMax: 12 });
    await note({ rate: 1 }, { reason: 'write_refused', law: false });
    const dry = await run(['approve', 'checkout', '--dry-run']);
    expect(dry.stdout).toMatch(/rate +100\/s +→ +64\/s/);
    const done = await run(['approve', 'checkout', '1', '--yes', '--json']);
    expect(JSON.parse(done.stdout)).toMatchObject({
      ...{ verb: 'approve', status: 'done', revision: 2, before: { rate: 100 } },
      ...{ after: { rate: 64, inFlightMax: 12, capacity: 200, mode: 'recommend' } },
      sentence: expect.stringMatching(/approved .*: rate 100 → 64\/s.*It said: p95 310 ms/),
    });
    expect(parseByPerson((await params()).byPerson)).toMatchObject({
      ...{ rate: { is: 64, over: 100 }, inFlightMax: { is: 12, over: 24 } },
    });
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, owner: 'pay' }));
    expect(await params()).toMatchObject({ rate: 64, inFlightMax: 12 });
    const limiter = { name: 'checkout', rate: 90, capacity: 200, inFlightMax: 24 };
    await adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, limiter }));
    expect(await params()).toMatchObject({ rate: 90, inFlightMax: 12 });
    // A pin that ends goes back to it, too.
    await run(['pin', 'checkout', '--in-flight', '3', '--hold', '--yes']);
    await run(['release', 'checkout', '--yes']);
    expect(await params()).toMatchObject({ rate: 90, inFlightMax: 12 });
  });

  test.each([
    [
      'another revision',
      async () => {},
      ['7'],
      /you named revision 7, and it was made at revision 1/,
    ],
    [
      'numbers that moved',
      () => redis.hset(keys.params, 'rate', '80'),
      [],
      /in force has moved since \(rate 100 → 80\/s\)/,
    ],
    [
      'another policy',
      () => adoptBy(redis, 'autopilot', loadedPolicy({ ...LAW, owner: 'x' })),
      [],
      /another policy has been adopted since/,
    ],
  ])('a stale one is refused: %s', async (_what, move, more, says) => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    await note({ rate: 64 });
    await move();
    const { revision } = await params();
    const got = await run(['approve', 'checkout', ...more, '--yes']);
    expect(got).toMatchObject({ code: 1, stderr: expect.stringMatching(says) });
    expect((await params()).revision).toBe(revision);
  });

  test('an open breaker, a hold, and a mode in which numbers bind nobody are refused', async () => {
    await adoptBy(redis, 'autopilot', loadedPolicy(LAW));
    await note({ rate: 64, state: 'open' });
    const said = async () => (await run(['approve', 'checkout', '--yes'])).stderr;
    expect(await said()).toMatch(/would have the breaker open/);
    await run(['freeze', 'checkout', '--hold', '--yes']);
    await note({ rate: 64 });
    expect(await said()).toMatch(/is held by .*flyball thaw checkout/);
    await run(['promote', 'checkout', '--to', 'shadow', '--yes']);
    expect(await said()).toMatch(/in mode shadow.*promote checkout --to recommend/);
  });
});
