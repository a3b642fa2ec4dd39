/** Automatic rollback on a running daemon: one revision that holds nothing, explained, told; across a change of owner and policy. Stage: tests. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { lawName } from '../../src/daemon/tell-status.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { mustRead } from '../support/cli-run.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
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

const checkpoint = async () => JSON.parse((await redis.get(keys.state)) ?? '{}');

test('what another daemon saw go bad under a policy just adopted, the next one takes back', async () => {
  setup.write('checkout.ts', policyText("control: { law: 'step' },"));
  const first = setup.start();
  await first.line('lease_taken');
  const traffic = startTraffic(server, 'checkout', 5);
  try {
    const stored = await until('a checkpoint', async () => {
      const found = await checkpoint();
      return found.decide?.memory.proof !== undefined && found;
    });
    await first.stop();
    // Nobody else writes now. Twice as much was answered well under lower limits, until another policy came.
    const { decide } = stored;
    Object.assign(decide.memory.proof, { rate: 60, cap: 10, good: 80, bad: 2, worse: 40, ms: 0 });
    const left = { ...stored, decide, policy: 'f'.repeat(64) };
    await redis.set(keys.state, JSON.stringify(left), 'KEEPTTL');

    const next = setup.start();
    await next.line('lease_taken');
    const entry = await until(
      'the rollback',
      async () => (await readEntries(redis, address, { reason: 'auto_rollback' })).entries[0],
    );
    expect(entry.body).toMatchObject({
      ...{ kind: 'change', actor: { kind: 'autopilot' }, law: lawName('step') },
      ...{ before: { rate: 100, inFlightMax: 20 }, after: { rate: 60, inFlightMax: 10 } },
    });
    expect(entry.body.sentence).toMatch(
      /^80 → 40 good answers\/s since a policy was adopted [\d.]+ s ago.*back to the last good values; cap 20 → 10; rate ceiling 100 → 60\/s\.$/,
    );
    expect(await explainEntry(redis, address, entry)).toMatchObject({ verdict: 'agrees' });
    expect(await mustRead(redis, address)).toMatchObject({ pinnedUntil: 0, heldBy: '', rate: 60 });
    await until('the alert', () =>
      next.lines.find(({ event, kind }) => event === 'alert' && kind === 'auto_rollback'),
    );
    await until('a checkpoint that knows of it', async () => {
      const { policy, decide: now } = await checkpoint();
      return policy !== left.policy && now.memory.proof.level === 1 && now.memory.proof.coolMs > 0;
    });
  } finally {
    await traffic.stop();
  }
});
