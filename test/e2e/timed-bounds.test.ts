/** Timed bounds on a running daemon: the law climbs past the policy's maximum and comes back; CLI, status, explain, alert. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from '../support/cli-run.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import type { TestRedis } from '../support/redis-server.js';
import { startTraffic } from '../support/traffic.js';

const address = { name: 'checkout' };
vi.setConfig({ testTimeout: 180_000 });
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ server, redis, setup } = bench);
});

const flyball = (...args: string[]) => cli([...args, '--redis', server.url]);

async function told(...args: string[]) {
  const run = await flyball(...args, '--json');
  expect([run.code, run.stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(run.stdout);
}

test('I1, I13: the law climbs to a person’s maximum, each step explained, and is back within the policy when they end', async () => {
  // 40 requests a second against 20: the limit binds, and all that is answered is well.
  const text = policyText(
    "control: { law: 'step', healthyFor: '1s', up: 1.5 }, guards: { cooldown: 0, autoRollback: false },",
    "name: 'checkout', rate: 20, capacity: 20, inFlightMax: 20",
  );
  setup.write('checkout.ts', text.replace('min: 20, max: 400', 'min: 10, max: 20'));
  const daemon = setup.start();
  await daemon.line('lease_taken');
  const traffic = startTraffic(server, 'checkout', 2);
  try {
    const set = await told('bounds', 'checkout', '--rate-max', '60', '--for', '4m', '--yes');
    expect(set).toMatchObject({
      ...{ verb: 'bounds_set', status: 'done', hold: { untilMs: expect.any(Number) } },
      bounds: { before: { rate: { min: 10, max: 20 } }, after: { rate: { min: 10, max: 60 } } },
    });
    const climbed = await until(
      'the law to climb past the policy',
      async () =>
        (await readEntries(redis, address)).entries.find(
          ({ body }) => body.actor.kind === 'autopilot' && (body.after?.rate ?? 0) > 20,
        ),
      90_000,
    );
    expect(climbed.body.sample?.bounds).toEqual({ rate: { max: 60 } });
    expect(await explainEntry(redis, address, climbed)).toMatchObject({ verdict: 'agrees' });
    expect((await mustRead(redis, address)).rate).toBeLessThanOrEqual(60);
    const [status] = (await told('status', 'checkout')).limiters;
    expect(status).toMatchObject({
      bounds: { rate: [10, 60] },
      holds: [{ kind: 'bounds', by: expect.stringContaining('(unverified)') }],
    });
    const lines = await flyball('status', 'checkout');
    expect(lines.stdout).toMatch(/hold +bounds until .* left\) by/);
    expect(lines.stdout).toContain('flyball bounds checkout --clear (ends it)');
    // Less than five minutes are left of them.
    await until('the alert', () =>
      daemon.lines.find(({ event, kind }) => event === 'alert' && kind === 'hold_ending'),
    );

    await told('bounds', 'checkout', '--rate-max', '60', '--for', '1s', '--yes');
    const lapsed = await until(
      'them to lapse',
      async () => (await readEntries(redis, address, { reason: 'bounds_lapsed' })).entries[0],
    );
    expect(lapsed.body).toMatchObject({ actor: { kind: 'autopilot' }, after: { rate: 20 } });
    const params = await mustRead(redis, address);
    expect(params).toMatchObject({ minRate: 10, maxRate: 20, windows: '' });
    expect(params.rate).toBeLessThanOrEqual(20);
    expect((await told('bounds', 'checkout', '--clear', '--yes')).status).toBe('nothing');
  } finally {
    await traffic.stop();
  }
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('the bounds of a person stand before a daemon in recommend, turn after turn', async () => {
  setup.write('checkout.ts', policyText().replace("mode: 'auto'", "mode: 'recommend'"));
  const daemon = setup.start();
  await daemon.line('lease_taken');
  const keys = limiterKeys(address);
  const ticks = async () => JSON.parse((await redis.get(keys.status)) ?? '{}').atMs as number;
  await told('bounds', 'checkout', '--rate-max', '80', '--for', '1h', '--yes');
  const { revision } = await mustRead(redis, address);
  const from = await until('a turn', ticks);
  await until('some more turns', async () => (await ticks()) > from + 500);
  expect(await mustRead(redis, address)).toMatchObject({ rate: 80, maxRate: 80, revision });
  await told('bounds', 'checkout', '--clear', '--yes');
  expect(await mustRead(redis, address)).toMatchObject({ rate: 100, maxRate: 400, windows: '' });
});
