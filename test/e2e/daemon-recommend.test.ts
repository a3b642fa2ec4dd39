/** Recommend mode on a running daemon: answers as a static limit, the law's opinion in notes and status (I12). */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { personWrites } from '../support/person-write.js';
import type { TestRedis } from '../support/redis-server.js';
import { startTraffic } from '../support/traffic.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
vi.setConfig({ testTimeout: 180_000 });
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ server, redis, setup } = bench);
});

const params = async () => (await readParams(redis, address)).params!;

for (const mode of ['recommend', 'shadow']) {
  test(`I12: in ${mode} the law cuts values of its own, which are noted, and changes nothing`, async () => {
    const text = policyText(`
      signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
      control: { law: 'step', slowAboveMs: 1, slowFor: '1s', down: 0.8 },`);
    setup.write('checkout.ts', text.replace("mode: 'auto'", `mode: '${mode}'`));
    const daemon = setup.start();
    await daemon.line('lease_taken');
    const traffic = startTraffic(server, 'checkout', 20);
    try {
      const note = await until(
        'a recommendation',
        async () => (await readEntries(redis, address, { kind: 'note' })).entries[0],
        60_000,
      );
      expect(note.body.sentence).toContain(`Recommended, not applied (mode ${mode})`);
      expect(note.body.before).toMatchObject({ rate: 100 });
      expect(note.body.after).toMatchObject({ rate: 80 });
      expect(await explainEntry(redis, address, note)).toMatchObject({ verdict: 'agrees' });
      const status = await until(
        'a second cut',
        async () => {
          const now = JSON.parse((await redis.get(keys.status)) ?? '{}');
          return now.wouldBe?.rate <= 64 && now;
        },
        60_000,
      );
      expect(status.sample.inForce.rate).toBeLessThanOrEqual(80);
    } finally {
      await traffic.stop();
    }
    expect(await params()).toMatchObject({ rate: 100, capacity: 50, inFlightMax: 20, revision: 1 });
    // One note a minute, however often the law moves.
    expect((await readEntries(redis, address, { kind: 'note' })).entries).toHaveLength(1);
    expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
  });
}

test('a person’s trip in recommend ends with its open time, and the policy’s numbers are back', async () => {
  setup.write('checkout.ts', policyText().replace("mode: 'auto'", "mode: 'recommend'"));
  const daemon = setup.start();
  await daemon.line('lease_taken');
  await personWrites(redis, address, { state: 'open', openForMs: 500 }, 'trip');
  await daemon.line('change', (line) => line.reason === 'trip_over');
  expect(await params()).toMatchObject({ state: 'closed', rate: 100 });

  await personWrites(redis, address, { rate: 50 }, 'pin');
  await daemon.line('change', (line) => line.reason === 'policy_numbers');
  expect(await params()).toMatchObject({ rate: 100 });
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});
