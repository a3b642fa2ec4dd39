/** A canary that rests: what a person or the breaker says of its limiter binds all; whoever leads counts nothing of that time. Stage: tests. */
import type { Redis } from 'ioredis';
import { beforeEach, expect, test } from 'vitest';
import { tryFirst } from '../../src/actuate/canary.js';
import { createLease } from '../../src/actuate/lease.js';
import { trip } from '../../src/actuate/verbs/breaker.js';
import { freeze, thaw } from '../../src/actuate/verbs/freeze.js';
import { canaryText } from '../../src/redis/canary.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { A, address, at, canaryRig, FIRST, FOR_MS } from '../support/canary-rig.js';
import { cli, lawWrite, mustRead } from '../support/cli-run.js';
import { adoptBy } from '../support/policies.js';

const rig = canaryRig();
const { options, tries, canary, newest, says, looksAfter, answers } = rig;
let redis: Redis;
beforeEach(() => {
  ({ redis } = rig.bench());
});
const status = async (...more: string[]) =>
  (await cli(['status', 'checkout', ...more], { env: rig.bench().env })).stdout;

test.each([
  ['frozen', freeze(3_600_000), 'a person holds the limiter'],
  ['tripped', trip('until-ended'), 'the limiter is open'],
])(
  'while its limiter is %s it is not adopted, which status says, and unproven at its end',
  async (_, verb, why) => {
    await tries(A);
    await answers(0, 40);
    expect(await looksAfter(40_000)).toBe(false);
    expect(await status()).toMatch(/\n {2}canary +policy [0-9a-f]{12} on 50 % .*, judged after/);
    await says(verb);
    expect(await status()).toMatch(
      new RegExp(`canary +policy .* on 50 % .* rests, its time does not count: ${why}`),
    );
    const { limiters } = JSON.parse(await status('--json'));
    expect(limiters[0].canary).toMatchObject({ ended: null, rests: why });
    expect(await looksAfter(FOR_MS + 1_000)).toBe(false);
    expect((await mustRead(redis, address)).policyHash).toBe(FIRST.hash);
    expect(await looksAfter(3 * FOR_MS + 1_000)).toBe(true);
    expect(await newest()).toMatchObject({
      reason: 'canary_unproven',
      sentence: expect.stringMatching(new RegExp(`^The canary .* ${why}`)),
    });
    expect(await status()).toMatch(
      /canary +policy [0-9a-f]{12} proved nothing, and was taken back/,
    );
  },
);

test('the time that it rested is added, and what both saw meanwhile does not count', async () => {
  await tries(A);
  await answers(0, 20);
  expect(await looksAfter(25_000)).toBe(false);
  await says(freeze(3_600_000));
  await answers(25_000, 20, { canary: 20 });
  expect(await looksAfter(35_000)).toBe(false);
  expect(await looksAfter(45_000)).toBe(false);
  await says(thaw());
  await answers(45_000, 20);
  expect(await looksAfter(FOR_MS + 10_000)).toBe(false);
  // It rested from 25 s on, as far as its leader has seen, until 45 s.
  expect(await looksAfter(FOR_MS + 21_000)).toBe(true);
  const { reason, detail } = await newest();
  expect(reason).toBe('canary_passed');
  expect(detail).toMatchObject({ seen: { restedMs: 20_000, canary: { failed: 0 } } });
});

test('who leads late makes up for what it cannot read: that may have rested', async () => {
  const forMs = 600_000;
  await tryFirst(redis, A, { percent: 50, forMs }, options());
  await says(freeze(3_600_000));
  expect(await looksAfter(forMs - 100_000)).toBe(false);
  await says(thaw());
  await answers(forMs - 100_000, 90);
  rig.watch = await rig.leader();
  // It reads the last two minutes, and takes the eight before for rest.
  for (const s of [601, 700, 800, 900, 1000, 1079]) {
    expect(await looksAfter(1000 * s)).toBe(false);
  }
  expect(await looksAfter(1_082_000)).toBe(true);
  const { reason, detail } = await newest();
  expect(reason).toBe('canary_passed');
  expect(detail).toMatchObject({ seen: { restedMs: 481_000 } });
});

test('who leads late while it rests knows nothing of the time before', async () => {
  await tries(A);
  await says(freeze(3_600_000));
  expect(await looksAfter(40_000)).toBe(false);
  await says(thaw());
  await answers(40_000, 40);
  expect(await looksAfter(FOR_MS + 39_000)).toBe(false);
  expect(await looksAfter(FOR_MS + 41_000)).toBe(true);
  expect((await newest()).detail).toMatchObject({ seen: { restedMs: 40_000 } });
});

/** As if it had begun so long before, with nothing in its log since: time that nobody need wait for. */
async function beganBefore(ms: number): Promise<void> {
  const { since, until, ...rest } = await canary();
  const text = canaryText({ ...rest, since: since - ms, until: until - ms });
  await redis.hset(limiterKeys(address).params, 'canary', text);
  await redis.xtrim(limiterKeys(address).audit, 'MAXLEN', '=', 1);
}

test.each([
  ['a person', 0, async () => [await says(freeze(3_600_000)), await says(thaw())]],
  // No daemon was there to write that it lapsed.
  [
    'time alone',
    5_000,
    () => redis.hset(limiterKeys(address).params, 'frozenUntil', Date.now() - 5_000),
  ],
])('who leads just after a rest that %s ended counts nothing of it', async (_, agoMs, rest) => {
  await tries(A);
  await beganBefore(100_000);
  await rest();
  const restedMs = Date.now() - agoMs - (await canary()).since;
  // What failed for the canary's part meanwhile was the limiter's own doing.
  await answers(0, Math.floor(restedMs / 1000) - 3, { canary: 20 });
  rig.watch = await rig.leader();
  expect(await looksAfter(restedMs + 10_000)).toBe(false);
  await answers(restedMs, FOR_MS / 1000);
  expect(await looksAfter(restedMs + FOR_MS - 10_000)).toBe(false);
  expect(await looksAfter(restedMs + FOR_MS + 1_000)).toBe(true);
  const { reason, detail } = await newest();
  expect(reason).toBe('canary_passed');
  expect(detail).toMatchObject({ seen: { canary: { failed: 0 } } });
});

test('changes of the law are no rest: who leads late counts what was seen meanwhile', async () => {
  await adoptBy(redis, 'person', at(100, { mode: 'auto' }));
  await tries(at(140, { mode: 'auto' }));
  await beganBefore(FOR_MS - 5_000);
  const lease = createLease({ redis, address, owner: 'd2:1:bb', leaseMs: 60_000 });
  await redis.del(limiterKeys(address).lease);
  await lease.acquire();
  const authority = lease.authority();
  if (authority?.kind !== 'lease') throw new Error('no lease');
  const reply = await lawWrite(redis, address, authority, { rate: 90 });
  expect(reply).toMatchObject({ status: 'ok' });
  await answers(0, 50);
  rig.watch = await rig.leader();
  expect(await looksAfter(FOR_MS + 1_000)).toBe(true);
  expect((await newest()).detail).toMatchObject({ seen: { restedMs: 0 } });
});
