/** The canary of a changed file on running daemons: adopted when it has passed, taken back early, unproven without traffic. Stage: tests. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { compileCanary } from '../../src/enforce/canary-reach.js';
import { createLimiter } from '../../src/index.js';
import { parseCanary } from '../../src/redis/canary.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from '../support/cli-run.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import type { TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const other = { name: 'checkout.canary' };
vi.setConfig({ testTimeout: 180_000 });
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ server, redis, setup } = bench);
  setup.write('checkout.ts', policyText());
});

const CHANGED = (forTime: string) =>
  policyText(`guards: { cooldown: '5s' }, canary: { percent: 50, for: '${forTime}' },`);
const canary = async () => parseCanary((await mustRead(redis, address)).canary);
const entry = (reason: string) =>
  until(
    `the entry ${reason}`,
    async () => (await readEntries(redis, address, { reason })).entries[0],
    60_000,
  );
const registered = () => redis.hgetall(fleetKeys().limiters);
/** The entry is written first. */
const isOff = () =>
  until('it is unregistered', async () => Object.keys(await registered()).length === 1);

/** Steady requests; those of the subjects that are named so fail. */
function traffic() {
  const client = server.client({ autoResendUnfulfilledCommands: false });
  const limiter = createLimiter({ ...address, redis: client, onWarning: () => {} });
  let fails = (_subject: string) => false;
  const beganAt = performance.now();
  let sent = 0;
  function ask() {
    sent += 1;
    const subject = `user:${sent % 40}`;
    const answer = () => {
      if (fails(subject)) throw new Error('no');
    };
    limiter.run(subject, answer).catch(() => {});
  }
  // A busy machine makes the timer late, not the requests fewer.
  const timer = setInterval(() => {
    while (sent * 15 < performance.now() - beganAt) ask();
  }, 15);
  return {
    failFor(which: (subject: string) => boolean) {
      fails = which;
    },
    async stop() {
      clearInterval(timer);
      await limiter.close();
      client.disconnect();
    },
  };
}

test('a change runs for its part first, and is adopted for all when it has passed, also by who leads after a kill; nothing of the limiter moves meanwhile', async () => {
  const first = setup.start();
  await first.line('lease_taken');
  const load = traffic();
  try {
    const before = await mustRead(redis, address);
    setup.write('checkout.ts', CHANGED('8s'));
    const began = await entry('canary_begins');
    // With nobody left to judge it, there is time to look.
    first.signal('SIGKILL');
    await first.exited;
    expect(began.body).toMatchObject({ before: began.body.after, policyHash: before.policyHash });
    expect(began.body.sentence).toMatch(/50 % of the subjects first, on checkout\.canary/);
    expect(await registered()).toEqual({ checkout: '', 'checkout.canary': '' });
    expect(await mustRead(redis, other)).toMatchObject({ rate: 50, maxRate: 200, generation: 0 });
    expect(await mustRead(redis, address)).toMatchObject({
      ...{ rate: before.rate, capacity: before.capacity, policyHash: before.policyHash },
    });
    const status = await cli(['status', 'checkout'], {
      env: { FLYBALL_REDIS_URL: server.url },
    });
    expect(status.stdout).toMatch(/canary +policy [0-9a-f]{12} on 50 % of the subjects/);
    setup.start();

    const passed = await entry('canary_passed');
    expect(passed.body.sentence).toMatch(
      /^The canary of policy [0-9a-f]{12} passed: .*canary \d+ answers.*others \d+ answers/,
    );
    const now = await mustRead(redis, address);
    expect(now).toMatchObject({ canary: '', policyHash: passed.body.policyHash });
    expect(now.policyHash).not.toBe(before.policyHash);
    await isOff();
    const ends = async () => (await redis.pttl(limiterKeys(other).params)) > 0;
    await until('its keys end by themselves', ends);
    expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
  } finally {
    await load.stop();
  }
});

test('one whose part fails is taken back at once, told, and not tried again, also by a daemon that starts', async () => {
  const first = setup.start();
  await first.line('lease_taken');
  const load = traffic();
  try {
    setup.write('checkout.ts', CHANGED('10m'));
    await entry('canary_begins');
    const reach = compileCanary((await mustRead(redis, address)).canary)!;
    load.failFor((subject) => reach.reaches(subject));
    const failed = await entry('canary_failed');
    expect(failed.body.sentence).toMatch(/failed: .*canary \d+ answers/);
    expect((failed.body.detail as { seen: unknown }).seen).toMatchObject({ forMs: 600_000 });
    expect(await canary()).toMatchObject({ ended: 'failed' });
    await until('the alert', () =>
      first.lines.find(({ event, kind }) => event === 'alert' && kind === 'canary_failed'),
    );
    await isOff();
    await first.stop();
    const next = setup.start();
    await next.line('lease_taken');
    expect(await canary()).toMatchObject({ ended: 'failed' });
    // A person may adopt it all the same.
    const { policyHash } = await mustRead(redis, address);
    const env = { FLYBALL_REDIS_URL: server.url };
    const applied = await cli(['apply', setup.policies, '--yes'], { env });
    expect(applied.code).toBe(0);
    const now = await mustRead(redis, address);
    expect(now).toMatchObject({ canary: '' });
    expect(now.policyHash).not.toBe(policyHash);
  } finally {
    await load.stop();
  }
});

test('without traffic it waits three times as long, and is then taken back unproven', async () => {
  const daemon = setup.start();
  await daemon.line('lease_taken');
  setup.write('checkout.ts', CHANGED('1s'));
  const end = await entry('canary_unproven');
  expect(end.body.sentence).toMatch(/has proved nothing: fewer than 50 answers of a group/);
  expect(await canary()).toMatchObject({ ended: 'unproven' });
  await isOff();
  // Another change of the file is tried anew.
  setup.write(
    'checkout.ts',
    policyText("guards: { cooldown: '6s' }, canary: { percent: 5, for: '10m' },"),
  );
  await until('another', async () => {
    const now = await canary();
    return now !== null && now.ended === undefined;
  });
});
