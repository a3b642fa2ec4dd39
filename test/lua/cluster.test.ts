/** C31: on a cluster every script stays on its limiter's slot, declares all it touches, and heals by itself. */
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { heartbeat, inFlight, lease, note, take, takePipelined } from '../../src/redis/scripts.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject } from '../../src/redis/subject-override.js';
import { together } from '../../src/redis/together.js';
import { startLoneNode } from '../support/redis-cluster.js';
import type { TestRedis } from '../support/redis-server.js';
import { changeParams, seedParams, storedParams, testEntry } from '../support/seed-params.js';
import { FALLBACK } from './fixture.js';

let server: TestRedis;
let cluster: Cluster;
beforeAll(async () => {
  ({ server, cluster } = await startLoneNode());
});
afterAll(async () => {
  cluster.disconnect();
  await server.stop();
});

test.each([{ name: 'alone' }, { name: 'member', group: 'team' }])(
  'C31: every script, 1000 subjects: %j',
  async (address) => {
    const keys = limiterKeys(address);
    await server.client().script('FLUSH');
    await seedParams(
      cluster,
      keys,
      { subjectRate: 1, subjectCapacity: 2, inFlightMax: 5 },
      { policy: { hash: 'h', json: '{}' } },
    );
    const subjects = Array.from(
      { length: 1000 },
      (_, i) => `${i % 3 === 0 ? '{}' : 'é'}${i * 7919}}{`,
    );
    const calls = Array.from({ length: 10 }, (_, i) => ({
      keys,
      takes: subjects
        .slice(i * 100, i * 100 + 100)
        .map((subject) => ({ subject, cost: 1, priority: 'critical' as const })),
      chargeByUs: 'any' as const,
      fallback: FALLBACK,
      shadow: false,
    }));
    for (const call of calls.slice(0, 5))
      expect((await take(cluster, call)).answers).toHaveLength(100);
    expect(await takePipelined(cluster, calls.slice(5))).toHaveLength(5);
    const ask = { keys, processId: 'p', need: 1, reports: true, fallback: FALLBACK };
    expect((await inFlight(cluster, ask)).share).toBe(5);
    const held = await lease(cluster, { keys, op: 'acquire', owner: 'o', leaseMs: 5000 });
    if (held.status !== 'held') throw new Error('not held');
    const beat = { keys, owner: 'o', token: held.token, leaseMs: 5000, checkpoint: '{}' };
    expect(await heartbeat(cluster, beat)).toMatchObject({ status: 'ok' });
    expect(await changeParams(cluster, keys, { rate: 5 })).toMatchObject({
      status: 'ok',
      revision: 2,
    });
    const { epoch, revision } = (await storedParams(cluster, keys))!;
    const entry = await testEntry(cluster, keys, epoch, revision, 'noted');
    expect(await note(cluster, { keys, entry })).toMatchObject({ status: 'ok' });
  },
);

test('C31: sets of takes of one group, 1000 subjects; two tags are refused by Redis itself', async () => {
  const limiters = ['total', 'tenant'].map((name) => ({
    keys: limiterKeys({ name, group: 'shop' }),
    fallback: FALLBACK,
    shadow: false,
  }));
  for (const { keys } of limiters) {
    await seedParams(cluster, keys, { subjectRate: 1, subjectCapacity: 2, capacity: 1000 });
  }
  const take = (subject: string) => ({ subject, cost: 1, priority: 'default' as const });
  let admitted = 0;
  for (let from = 0; from < 1000; from += 250) {
    const sets = Array.from({ length: 250 }, (_, i) => [
      take(`{}${from + i}`),
      take(`é${(from + i) * 7919}}{`),
    ]);
    const reply = await together(cluster, { limiters, sets, chargeByUs: 'any' });
    admitted += reply.sets.filter((set) => set.every(({ allowed }) => allowed)).length;
  }
  expect(admitted).toBe(1000);
  const apart = [limiters[0]!, { ...limiters[1]!, keys: limiterKeys({ name: 'alone' }) }];
  const sets = [[take('a'), take('b')]];
  const call = together(cluster, { limiters: apart, sets, chargeByUs: 'any' });
  await expect(call).rejects.toThrow('CROSSSLOT');
});

test('C31: single subjects: their index, overrides and tiers lie on the limiter’s slot, past the most too', async () => {
  const keys = limiterKeys({ name: 'known', group: 'team' });
  const { epoch, revision } = await seedParams(cluster, keys, {
    ...{ capacity: 1000, subjectRate: 1, subjectCapacity: 2, subjectRules: 1 },
    subjectTerms: 'max=50 on=paid reset=failed keep=60000 step=1:9:-',
  });
  const subjects = Array.from({ length: 100 }, (_, i) => `${i % 3 === 0 ? '{}' : 'é'}${i}}{`);
  const takes = subjects.map((subject) => ({ subject, cost: 1, priority: 'default' as const }));
  const call = { keys, takes, chargeByUs: 'any' as const, fallback: FALLBACK, shadow: false };
  const reply = await take(cluster, { ...call, rules: true });
  expect(reply.answers.filter(({ shared }) => shared)).toHaveLength(50);
  // A year on, all of them look gone.
  const later = { ...call, rules: true, nowUs: (Date.now() + 31_536_000_000) * 1_000 };
  expect((await take(cluster, later)).status).toBe('ok');
  const outcome = { keys, subject: subjects[0]!, name: 'paid', id: '}{' };
  expect(await countOutcome(cluster, outcome)).toMatchObject({ tier: 1 });
  const said = { kind: 'block' as const, untilMs: -1, rate: null, capacity: null, revision: 2 };
  const written = await overrideSubject(cluster, {
    ...{ keys, subject: subjects[1]!, expected: { epoch, revision } },
    override: { ...said, subject: subjects[1]!, by: 'ada', why: '' },
    entry: await testEntry(cluster, keys, epoch, revision + 1, 'said'),
  });
  expect(written).toMatchObject({ status: 'ok' });
  expect((await take(cluster, { ...call, rules: true })).answers[1]?.reason).toBe('blocked');
});
