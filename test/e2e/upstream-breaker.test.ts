/** Two limiters in front of one upstream, led by daemons of their own: one trips, both open; one's probes pass, both come back. */
import type { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import { readEntries, type StoredEntry, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { createLimiter } from '../../src/index.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, namesThatLead, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import type { TestRedis } from '../support/redis-server.js';

vi.setConfig({ testTimeout: 180_000 });
const NAMES = ['pay', 'refund'] as const;
type Name = (typeof NAMES)[number];
/** The way back grows at each turn that hears answers, which come once a second: of longer turns it takes fewer. */
const TURNS = { FLYBALL_TICK_MS: '250', FLYBALL_LEASE_MS: '2000' };
const hash = fleetKeys().upstream('bank');
let server: TestRedis;
let redis: Redis;
let setups: DaemonSetup[] = [];
const ends: (() => Promise<void>)[] = [];

daemonBench((bench) => {
  ({ server, redis, setups } = bench);
}, NAMES.length);
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

function policy(name: Name): string {
  return policyText(
    `signals: { errors: { source: 'telemetry', stat: 'errorRatio' } },
  breaker: {
    on: 'errors', above: '50%', per: '1s', openFor: '1s', openForMax: '4s', probeRate: 10, upstream: 'bank',
  },`,
    `name: '${name}', rate: 200, capacity: 100`,
  ).replace('max: 400 }, inFlight: { min: 2, max: 64 }', 'max: 400 }');
}

/** Requests of 5 ms, 60 a second; each ends as `fails` says then. */
function traffic(name: Name, fails: () => boolean): void {
  const client = server.client({ autoResendUnfulfilledCommands: false });
  const limiter = createLimiter({ name, redis: client, rate: 200, capacity: 100 });
  const work = async () => {
    await new Promise((ok) => setTimeout(ok, 5));
    if (fails()) throw new Error('bank');
  };
  const timer = setInterval(() => limiter.run(undefined, work).catch(() => {}), 16);
  ends.push(async () => {
    clearInterval(timer);
    await limiter.close();
    client.disconnect();
  });
}

const states = () =>
  Promise.all(NAMES.map((name) => redis.hget(limiterKeys({ name }).params, 'state')));

async function changes(name: Name): Promise<StoredEntry[]> {
  return (await readEntries(redis, { name }, { kind: 'change' })).entries;
}
async function firstOf(name: Name, reasons: readonly string[]): Promise<StoredEntry | undefined> {
  const entries = (await changes(name)).sort((a, b) => a.body.revision - b.body.revision);
  return entries.find(({ body }) => reasons.includes(body.reason));
}

test('a trip of one opens both, each with an entry of its own that names the upstream; both come back', async () => {
  for (const [i, name] of NAMES.entries()) setups[i]!.write(`${name}.ts`, policy(name));
  const names = namesThatLead(NAMES);
  await Promise.all(
    setups.map((setup, i) => setup.start({ ...TURNS, FLYBALL_NAME: names[i] }).line('lease_taken')),
  );
  const failing = { pay: false, refund: false };
  for (const name of NAMES) traffic(name, () => failing[name]);
  await until('both tell', async () => (await redis.hlen(hash)) === 2);
  expect(await redis.pttl(hash)).toBeGreaterThan(0);

  // The upstream fails for refunds alone: it is the upstream's breaker all the same.
  failing.refund = true;
  await until('both are open', async () => (await states()).every((state) => state === 'open'));
  const tripped = (await firstOf('refund', ['breaker_trip']))!;
  const followed = (await firstOf('pay', ['breaker_upstream']))!;
  expect(tripped.body.sentence).toMatch(/failures of .* answers .*closed → open/);
  expect(followed.body.sentence).toMatch(
    /^upstream bank: refund opened its breaker; open for [\d.]+ s; closed → open\.$/,
  );
  // It heard of that trip, or of one after it, while it stood: both end at once.
  const word = followed.body.sample?.upstream;
  expect(word).toMatchObject({ name: 'bank', by: 'refund', state: 'open' });
  const rounds = (await changes('refund')).filter(({ body }) => body.after?.state === 'open');
  expect(rounds.map(({ body }) => body.sample!.nowMs)).toContain(word!.round);
  expect(word!.leftMs).toBeLessThanOrEqual(1000);
  expect(await firstOf('pay', ['breaker_trip'])).toBeUndefined();

  failing.refund = false;
  await until('both are closed', async () => (await states()).every((state) => state === 'closed'));
  for (const name of NAMES) expect(await firstOf(name, ['breaker_recovering'])).toBeDefined();

  // I13: what followed another's word is decided so again, from the word that its entry holds.
  for (const name of NAMES) {
    for (const entry of await changes(name)) {
      const { verdict } = await explainEntry(redis, { name }, entry);
      expect([entry.body.reason, verdict]).toEqual([
        entry.body.reason,
        entry.body.law === undefined ? 'not_a_decision' : 'agrees',
      ]);
    }
    expect((await verifyAudit(redis, { name })).verdict).toBe('consistent');
  }
});

test('what cannot be read opens nobody: each goes by its own evidence', async () => {
  await redis.set(hash, 'x');
  setups[0]!.write('pay.ts', policy('pay'));
  const daemon = setups[0]!.start();
  const line = await daemon.line('upstream_unread');
  expect(line.msg).toMatch(
    /^What the limiters of upstream bank .* pay goes by its own evidence\.$/,
  );
  await redis.del(hash);
  const garbage = {
    refund: 'x',
    a: '{}',
    b: '{"state":"open","round":-1,"untilMs":9e99}',
    c: '[]',
  };
  await redis.hset(hash, garbage);
  traffic('pay', () => false);
  await until('it tells', async () => (await redis.hget(hash, 'pay')) !== null);
  expect(await states()).toEqual(['closed', null]);
});
