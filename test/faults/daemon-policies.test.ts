/** C85: broken policy files under a running daemon: the adopted policy stays, and everyone is told. */
import { rmSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';

const address = { name: 'checkout' };
vi.setConfig({ testTimeout: 240_000 });
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ redis, setup } = bench);
});

const BROKEN: Record<string, string> = {
  'a syntax error': 'export default {',
  'a valid file of the wrong type': 'export default 42;',
  'a rate that is a word': policyText('', "name: 'checkout', rate: 'ten', capacity: 50"),
  'an empty file': '',
  'a half-written file': policyText().slice(0, 180),
  'a file that throws': "throw new Error('no such secret');",
  'a file that never returns': 'for (;;) {}',
  'a file that waits for ever': 'await new Promise(() => {});',
  'a file that ends the process': 'process.exit(0);',
};

test('C85: every kind of broken file leaves the adopted policy untouched, and is shown', async () => {
  const good = policyText();
  setup.write('checkout.ts', good);
  const daemon = setup.start({ FLYBALL_POLICY_DEADLINE_MS: '5000' });
  const http = await daemon.http();
  await daemon.line('lease_taken');
  await until('ready', async () => (await fetch(`${http}/readyz`)).status === 200);
  const before = (await readParams(redis, address)).params!;
  const read = async (path: string) => (await fetch(`${http}${path}`)).text();
  const faultLines = () => daemon.lines.filter((line) => line.event === 'policy_fault');
  const success = async (value: number) =>
    (await read('/metrics')).includes(`\nflyball_policy_load_success ${value}\n`);

  for (const [what, text] of Object.entries(BROKEN)) {
    const told = faultLines().length;
    setup.write('checkout.ts', text);
    await until(`${what}: told`, () => faultLines().length > told, 60_000);
    expect(await success(0)).toBe(true);
    const health = await read('/healthz?verbose');
    expect([what, health]).toEqual([what, expect.stringContaining('checkout.ts')]);
    expect(health).toMatch(/degraded\n$/);
    expect((await fetch(`${http}/readyz`)).status).toBe(200);
    const now = (await readParams(redis, address)).params!;
    expect([what, now.policyHash, now.revision, now.rate]).toEqual([
      what,
      before.policyHash,
      before.revision,
      100,
    ]);
  }
  setup.write('checkout.ts', good);
  await until('mended', () => success(1), 60_000);
  for (const line of faultLines()) expect(line.msg).toContain('The adopted policy stays in force.');

  // Its status key says so too, while the other file still loads and is adopted.
  setup.write('checkout.ts', BROKEN['a rate that is a word']!);
  setup.write(
    'other.ts',
    policyText(
      "guards: { cooldown: '5s' },",
      "name: 'other', rate: 50, capacity: 50, inFlightMax: 9",
    ),
  );
  await daemon.line('change', (line) => line.limiter === 'other');
  await until('status names the fault', async () => {
    const text = await redis.get(limiterKeys(address).status);
    return text && JSON.parse(text).faults.some((fault: string) => fault.includes('ten'));
  });

  rmSync(`${setup.policies}/checkout.ts`);
  await daemon.line('policy_file_gone');
  await until('no fault any more', () => success(1));
  const status = await until('its file is none', async () => {
    const text = await redis.get(limiterKeys(address).status);
    return text && JSON.parse(text).file === 'none' && JSON.parse(text);
  });
  expect(status.revision).toBe(before.revision);
  expect(await readParams(redis, address)).toMatchObject({
    params: { policyHash: before.policyHash, revision: before.revision, rate: 100 },
  });
  // The limiter is still led, and nothing was written by any of this.
  const { validUntil } = (await readParams(redis, address)).params!;
  await until(
    'it beats on',
    async () => (await readParams(redis, address)).params!.validUntil > validUntil,
  );
  expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent', changes: 1 });
});
