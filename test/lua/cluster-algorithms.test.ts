/** C31: on a cluster each algorithm, its refunds, shares and places stay on their limiter's slot, for any subject. */
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALGORITHMS, type AlgorithmTerms } from '../../src/redis/algorithms.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { refund } from '../../src/redis/refund.js';
import { inFlight, slots, take } from '../../src/redis/scripts.js';
import { startLoneNode } from '../support/redis-cluster.js';
import type { TestRedis } from '../support/redis-server.js';
import { seedParams } from '../support/seed-params.js';
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

test.each(ALGORITHMS)('C31: %s, 1000 subjects, with refunds', async (algorithm) => {
  const windowed = algorithm !== 'token-bucket' && algorithm !== 'leaky-bucket';
  const terms: AlgorithmTerms = {
    algorithm,
    windowMs: windowed ? 60_000 : 0,
    cells: algorithm === 'sliding-counter' ? 6 : 0,
  };
  for (const address of [{ name: algorithm }, { name: algorithm, group: 'team' }]) {
    const keys = limiterKeys(address);
    await server.client().script('FLUSH');
    const numbers = { rate: 1000, capacity: 1000, subjectRate: 1, subjectCapacity: 2 };
    await seedParams(cluster, keys, { ...numbers, inFlightMax: 2, safeInFlight: 2 });
    const subjects = Array.from(
      { length: 500 },
      (_, i) => `${i % 3 === 0 ? '{}' : 'é'}${i * 7919}}{`,
    );
    const takes = subjects.map((subject) => ({ subject, cost: 1, priority: 'default' as const }));
    const common = { keys, fallback: FALLBACK };
    const reply = await take(cluster, {
      ...common,
      takes,
      chargeByUs: 'any',
      shadow: false,
      terms,
    });
    expect(reply.answers.filter((each) => each.allowed)).toHaveLength(500);
    if (algorithm !== 'leaky-bucket') {
      const { epoch, generation } = reply.inForce;
      const refunds = subjects.slice(0, 128).map((subject, i) => ({
        subject,
        cost: 1,
        atUs: reply.nowUs,
        epoch,
        generation,
        terms,
        mark: `mark-${i}`,
      }));
      const answers = await refund(cluster, { ...common, refunds, dueUs: null, shadow: false });
      expect(answers).toEqual(Array(128).fill('refunded'));
    }
    const ask = { ...common, processId: 'p', need: 1, reports: true, byPlace: true, exact: true };
    expect(await inFlight(cluster, ask)).toMatchObject({ places: true, share: 0 });
    const held = await slots(cluster, { ...common, op: 'hold', ids: ['p:1', 'p:2', 'p:3'] });
    expect(held.done).toEqual([true, true, false]);
  }
});
