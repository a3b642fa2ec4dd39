/** A real daemon raises the reserve while more is asked for than the rate allows: low priorities are shed first. */
import type { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { createLimiter, type Limiter } from '../../src/index.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';

vi.setConfig({ testTimeout: 120_000 });
const address = { name: 'checkout' };
let redis: Redis;
let setup: DaemonSetup;
let limiter: Limiter;
let timer: NodeJS.Timeout;

daemonBench((bench) => {
  ({ redis, setup } = bench);
  limiter = createLimiter({ ...address, redis, rate: 40, capacity: 20, deadlineMs: 5_000 });
});
afterEach(async () => {
  clearInterval(timer);
  await limiter.close();
});

test('sheddable requests are shed, the others pass; the entry says so and is decided so again', async () => {
  const text = policyText("control: { law: 'fixed' },", "name: 'checkout', rate: 40, capacity: 20");
  setup.write(
    'checkout.ts',
    text.replace(
      'bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } }',
      'bounds: { rate: { min: 20, max: 40 }, reserve: { sheddable: 0.4 } }',
    ),
  );
  await setup.start().line('lease_taken');
  const admitted = { default: 0, sheddable: 0 };
  const asked = { default: 0, sheddable: 0 };
  const take = async (priority: 'default' | 'sheddable') => {
    const decision = await limiter.take(undefined, { priority });
    asked[priority] += 1;
    if (decision.allowed) admitted[priority] += 1;
    decision.done();
  };
  let beat = 0;
  timer = setInterval(() => {
    beat += 1;
    for (let i = 0; i < 3; i++) void take('sheddable');
    if (beat % 2 === 0) void take('default');
  }, 20);

  const raised = async () => (await readParams(redis, address)).params?.reserveSheddable === 0.1;
  await until('the reserve was raised', raised, 60_000);
  const before = { admitted: { ...admitted }, asked: { ...asked } };
  await until('fifty more', () => asked.default >= before.asked.default + 50);
  // 25/s of the 40/s are theirs, whoever else asks.
  const of = (name: 'default' | 'sheddable') =>
    (admitted[name] - before.admitted[name]) / (asked[name] - before.asked[name]);
  expect(of('default')).toBeGreaterThan(0.9);
  expect(of('sheddable')).toBeLessThan(0.6);

  const { entries } = await readEntries(redis, address, { kind: 'change' });
  const entry = entries.find(({ body }) => body.reason === 'reserve_raise')!;
  expect(entry.body).toMatchObject({
    before: { rate: 40 },
    after: { rate: 40, reserve: { default: 0, sheddable: 0.1 } },
  });
  expect(entry.body.sentence).toContain('sheddable requests are shed first');
  expect(await explainEntry(redis, address, entry)).toMatchObject({ verdict: 'agrees' });
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});
