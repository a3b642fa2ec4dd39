/** Real daemons tell a real receiver: a trip and its end, once in the fleet, Redis away, a broken policy; the CLI tries it. */
import { expect, type TestContext, test, vi } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { createLimiter } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from '../support/cli-run.js';
import { policyText, until } from '../support/daemon.js';
import { ownBench } from '../support/daemon-bench.js';
import { personWrites } from '../support/person-write.js';
import { startReceiver } from '../support/receiver.js';
import { startTraffic } from '../support/traffic.js';

vi.setConfig({ testTimeout: 180_000 });
const TELLS = `owner: 'payments',
  notify: [{ to: 'webhook', url: { env: 'HOOK' }, secret: { env: 'HOOK_SECRET' } }],`;
/** The way back grows at each turn that hears answers, which come once a second: of longer turns it takes fewer. */
const TURNS = { FLYBALL_TICK_MS: '500', FLYBALL_LEASE_MS: '2000' };

/** Each its own Redis, receiver and daemons: they mostly wait, and so run side by side. */
async function open(context: TestContext) {
  const bench = await ownBench(context);
  const receiver = await startReceiver();
  context.onTestFinished(() => receiver.close());
  const { server, setup } = bench;
  const env = {
    ...{ HOOK: `${receiver.url}/hook`, HOOK_SECRET: 'whsec_c2VjcmV0' },
    FLYBALL_POLICY_DEADLINE_MS: '60000',
  };
  const told = () =>
    receiver.got
      .map(({ body }) => JSON.parse(body) as Record<string, string>)
      .map(({ kind, state }) => `${kind} ${state}`);
  const verb = (args: string[]) =>
    cli([...args, '--redis', server.url], { env: { FLYBALL_POLICIES: setup.policies } });
  return { ...bench, receiver, env, told, verb };
}

test.concurrent('a person trips: who, what, why and the way back arrive signed; then the end, by the next daemon', async (context) => {
  const { server, redis, setup, receiver, env, told, verb } = await open(context);
  setup.write('checkout.ts', policyText(TELLS));
  const first = setup.start({ ...env, ...TURNS });
  await first.line('lease_taken');
  const second = setup.start({ ...env, ...TURNS });
  await second.line('started');
  const reason = ['--reason', 'the bank is down', '--yes'];
  const tripped = await verb(['trip', 'checkout', '--hold', ...reason]);
  expect(tripped.code).toBe(0);
  await until('the trip is told', () => told().includes('trip firing'));
  const got = receiver.got.find(({ body }) => body.includes('"trip"'))!;
  const alert = JSON.parse(got.body);
  expect(alert).toMatchObject({ limiter: 'checkout', owner: 'payments', severity: 'critical' });
  expect(alert.who).toMatch(/^person .*@/);
  expect(alert.why).toContain('the bank is down');
  expect(alert.undo).toContain('flyball reset checkout');
  expect(got.headers['webhook-signature']).toMatch(/^v1,/);

  const leader = [first, second].find(({ lines }) => lines.some(({ event }) => event === 'alert'))!;
  leader.signal('SIGKILL');
  await leader.exited;
  const heir = leader === first ? second : first;
  await heir.line('lease_taken');
  // It has recovered when answers have shown so.
  const traffic = startTraffic(server, 'checkout', 5);
  context.onTestFinished(() => traffic.stop());
  expect((await verb(['reset', 'checkout', ...reason])).code).toBe(0);
  await until('the end is told', () => told().includes('trip resolved'));
  expect(told().filter((each) => each.startsWith('trip'))).toEqual([
    'trip firing',
    'trip resolved',
  ]);
  expect(await redis.hexists('flyball:alerts', 'checkout/trip')).toBe(0);
});

test.concurrent('Redis away, and a policy that no longer loads: told while it lasts, and when it is over', async (context) => {
  const { server, redis, setup, env, told } = await open(context);
  setup.write('checkout.ts', policyText(TELLS));
  const daemon = setup.start(env);
  await daemon.line('lease_taken');
  await until(
    'it knows whom to tell',
    async () => (await redis.exists(limiterKeys({ name: 'checkout' }).status)) === 1,
  );
  setup.write('checkout.ts', 'export default 5;');
  await until('the policy is told', () => told().includes('policy_failed firing'));
  setup.write('checkout.ts', policyText(TELLS));
  await until('its end is told', () => told().includes('policy_failed resolved'));
  server.pause();
  await until('Redis is told', () => told().includes('redis_away firing'));
  server.resume();
  await until('its return is told', () => told().includes('redis_away resolved'));
});

test.concurrent('past subjects.max: services say so in their telemetry, and the daemon tells who the policy names', async (context) => {
  const { server, setup, env, receiver, told } = await open(context);
  const limiter = `name: 'checkout', rate: 100, capacity: 50, inFlightMax: 20,
    perSubject: { subject: 'ip:{ip}', rate: 1, capacity: 3 }, subjects: { max: 5, overflow: 'shared' }`;
  setup.write('checkout.ts', policyText(TELLS, limiter));
  const daemon = setup.start({ ...env, ...TURNS });
  await daemon.line('lease_taken');
  const api = createLimiter({ name: 'checkout', url: server.url, deadlineMs: 5_000 });
  context.onTestFinished(() => api.close());
  let made = 0;
  const timer = setInterval(() => void api.take(`ip:${made++}`), 50);
  context.onTestFinished(() => clearInterval(timer));
  await until('the alert is told', () => told().includes('subjects_overflow firing'));
  expect(api.stats().overflow).toBeGreaterThan(0);
  const alert = JSON.parse(
    receiver.got.find(({ body }) => body.includes('"subjects_overflow"'))!.body,
  );
  expect(alert).toMatchObject({ limiter: 'checkout', owner: 'payments', severity: 'warning' });
  expect(alert.look).toBe('flyball top checkout --denied');
  expect(JSON.stringify(alert.numbers)).toMatch(/subjects\.max\W+5\b/);
});

test.concurrent('C41: keys thrown away: an alert to whom the policy names, and one entry in the audit log', async (context) => {
  const { redis, setup, env, receiver, told } = await open(context);
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await redis.config('SET', 'maxmemory-samples', '20');
  // Older than all that the daemon writes and reads each turn: these go first.
  const fill = redis.pipeline();
  for (let k = 0; k < 3000; k++) fill.set(`other:${k}`, 'x'.repeat(1000));
  await fill.exec();
  setup.write('checkout.ts', policyText(TELLS));
  const daemon = setup.start({ ...env, ...TURNS });
  await daemon.line('lease_taken');
  const evicted = async () =>
    Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))?.[1] ?? 0);
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  await redis.config('SET', 'maxmemory', String(used - 200_000));
  await until('keys go', async () => (await evicted()) > 0);
  await redis.config('SET', 'maxmemory', '0');
  await until('the alert is told', () => told().includes('evictions event'));
  const alert = JSON.parse(receiver.got.find(({ body }) => body.includes('"evictions"'))!.body);
  expect(alert).toMatchObject({ limiter: null, severity: 'critical' });
  expect(JSON.stringify(alert.numbers)).toMatch(/0 → \d+.*allkeys-lru/);
  const notes = async () =>
    (await readEntries(redis, { name: 'checkout' }, { reason: 'redis_evicted' })).entries;
  await until('the entry', async () => (await notes()).length > 0);
  const [note] = await notes();
  expect(note!.body.detail).toMatchObject({ evictedBefore: 0, maxmemoryPolicy: 'allkeys-lru' });
});

test.concurrent('what a leader wrote in its last second the next one tells; limits that Redis had lost are told when they are back', async (context) => {
  const { redis, setup, env, receiver, told } = await open(context);
  setup.write('checkout.ts', policyText(TELLS));
  const first = setup.start({ ...env, ...TURNS });
  await first.line('lease_taken');
  first.signal('SIGKILL');
  await first.exited;
  const { revision } = await mustRead(redis, { name: 'checkout' });
  await personWrites(redis, { name: 'checkout' }, { rate: 60 }, 'auto_rollback');
  const heir = setup.start({ ...env, ...TURNS });
  await until('it is told', () => told().includes('auto_rollback event'));
  const alertOf = (kind: string) =>
    JSON.parse(receiver.got.find(({ body }) => body.includes(`"${kind}"`))!.body);
  expect(alertOf('auto_rollback')).toMatchObject({
    ...{ limiter: 'checkout', owner: 'payments' },
    look: `flyball explain checkout ${revision + 1}`,
  });

  await redis.flushall();
  await until('the limits are back', () => told().includes('params_restored event'));
  expect(alertOf('params_restored')).toMatchObject({ limiter: null, severity: 'critical' });
  expect(alertOf('params_restored').what).toMatch(/lost the limits of checkout.*as last seen/);
  expect(told().filter((each) => each === 'auto_rollback event')).toHaveLength(1);
  await heir.stop();
});

test.concurrent('flyball notify test: each destination once, what is wrong and no secret; --dry-run sends nothing', async (context) => {
  const { setup, receiver, env } = await open(context);
  setup.write('a.ts', policyText(TELLS));
  setup.write(
    'b.ts',
    policyText(TELLS, "name: 'orders', rate: 50, capacity: 5").replace(
      'inFlight: { min: 2, max: 64 }',
      '',
    ),
  );
  const dry = await cli(['notify', 'test', setup.policies, '--dry-run'], { env });
  expect([dry.code, receiver.got.length]).toEqual([0, 0]);
  expect(dry.stderr).toContain('a test, nothing has happened');
  const sent = await cli(['notify', 'test', setup.policies, '--json'], { env });
  expect(sent.code).toBe(0);
  expect(JSON.parse(sent.stdout).destinations).toEqual([
    { destination: 'webhook (HOOK)', limiters: ['checkout', 'orders'], status: 'sent', why: null },
  ]);
  expect(receiver.got).toHaveLength(1);
  receiver.answer((response) => void response.writeHead(404).end());
  const failed = await cli(['notify', 'test', setup.policies], { env });
  expect(failed.code).toBe(1);
  expect(failed.stdout).toContain('was the hook deleted?');
  const { HOOK: _none, ...rest } = env;
  const unset = await cli(['notify', 'test', setup.policies], { env: rest });
  expect(unset.stdout).toContain('HOOK is not set');
  const none = await cli(['notify', 'test', setup.policies, '--to', 'slack'], { env });
  expect([none.code, none.stderr]).toEqual([64, expect.stringContaining('No policy here names')]);
});
