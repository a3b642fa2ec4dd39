/** Which policy files a running daemon adopts, and when it only reports them. */
import { symlinkSync } from 'node:fs';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { daemonSetup, policyText, until } from '../support/daemon.js';
import { ownBench } from '../support/daemon-bench.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
vi.setConfig({ testTimeout: 180_000 });
/** Each its own Redis and daemons: they mostly wait, and so run side by side. */
async function open(context: TestContext) {
  const bench = await ownBench(context);
  bench.setup.write('checkout.ts', policyText());
  return { ...bench, params: async () => (await readParams(bench.redis, address)).params };
}

describe('adoption', () => {
  test.concurrent('a changed file is adopted at once; a new file brings a new limiter', async (context) => {
    const { redis, setup, params } = await open(context);
    const daemon = setup.start();
    await daemon.line('lease_taken');
    setup.write('checkout.ts', policyText("guards: { cooldown: '5s' },"));
    await daemon.line('change', (line) => line.reason === 'policy_adopted');
    expect(await params()).toMatchObject({ rate: 100, revision: 2 });
    setup.write(
      'search.ts',
      policyText('', "name: 'search', rate: 50, capacity: 50, inFlightMax: 9"),
    );
    await daemon.line('change', (line) => line.limiter === 'search');
    await until('both', async () => (await redis.hlen('flyball:limiters')) === 2);
    expect(await redis.hgetall('flyball:limiters')).toEqual({ checkout: '', search: '' });
    expect((await verifyAudit(redis, address)).changes).toBe(2);
  });

  test.concurrent("reload 'apply' only reports: pending in log and status, nothing written", async (context) => {
    const { redis, setup, params } = await open(context);
    setup.write('checkout.ts', policyText("reload: 'apply',"));
    const daemon = setup.start();
    await daemon.line('lease_taken');
    setup.write('checkout.ts', policyText("reload: 'apply', guards: { cooldown: '5s' },"));
    await daemon.line('policy_pending');
    await until('status says pending', async () => {
      const text = await redis.get(keys.status);
      return text && JSON.parse(text).file === 'pending';
    });
    expect((await params())!.revision).toBe(1);
  });

  test.concurrent('at start a changed file is adopted; an earlier version beside a living leader is drift', async (context) => {
    const { server, redis, setup, params } = await open(context);
    const old = policyText();
    const first = setup.start();
    await first.line('lease_taken');
    setup.write('checkout.ts', policyText("guards: { cooldown: '5s' },"));
    await first.line('change', (line) => line.reason === 'policy_adopted');
    const { policyHash } = (await params())!;

    const behind = daemonSetup(server.url);
    try {
      behind.write('checkout.ts', old);
      const second = behind.start();
      await second.line('policy_drift');
      await second.line('started');
      expect((await params())!.policyHash).toBe(policyHash);
      first.signal('SIGTERM');
      await first.exited;
      await second.line('lease_taken');
      await until('the new owner beats', async () => {
        const text = await redis.get(keys.status);
        return text && JSON.parse(text).file === 'drift';
      });
      // Never adopted by a mere change of owner.
      expect(await params()).toMatchObject({ policyHash, revision: 2 });
    } finally {
      await behind.close();
    }
    const again = setup.start();
    await again.line('lease_taken');
    setup.write('checkout.ts', old);
    await again.line('change', (line) => line.reason === 'policy_adopted');
    expect((await params())!.policyHash).not.toBe(policyHash);
  });

  test.concurrent('a limiter whose file lies with nobody any more is still led, by its adopted policy', async (context) => {
    const { server, setup } = await open(context);
    const first = setup.start();
    await first.line('lease_taken');
    first.signal('SIGTERM');
    await first.exited;
    const other = daemonSetup(server.url);
    try {
      other.write(
        'search.ts',
        policyText('', "name: 'search', rate: 50, capacity: 50, inFlightMax: 9"),
      );
      const second = other.start();
      await second.line('lease_taken', (line) => line.limiter === 'checkout');
    } finally {
      await other.close();
    }
  });
});

test.concurrent('a daemon that starts while Redis is full waits for it, and adopts its policies then', async (context) => {
  const { redis, setup, params } = await open(context);
  await redis.config('SET', 'maxmemory', '1');
  const daemon = setup.start({ FLYBALL_REDIS_WAIT_MS: '60000' });
  await daemon.line('redis_refuses');
  await redis.config('SET', 'maxmemory', '0');
  await daemon.line('lease_taken');
  expect(await params()).toMatchObject({ rate: 100, revision: 1 });
});

test.concurrent('symlinked policies, as a ConfigMap mounts them, are followed', async (context) => {
  const { server, setup } = await open(context);
  const mounted = daemonSetup(server.url);
  try {
    symlinkSync(`${setup.policies}/checkout.ts`, `${mounted.policies}/checkout.ts`);
    const daemon = mounted.start();
    await daemon.line('lease_taken');
    setup.write('checkout.ts', policyText("guards: { cooldown: '7s' },"));
    await daemon.line('change', (line) => line.reason === 'policy_adopted');
  } finally {
    await mounted.close();
  }
});
