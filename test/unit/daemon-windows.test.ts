/** What a leader writes when a window of the schedule begins and ends, at injected times, through the real script. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readParams, write } from '../../src/actuate/actuator.js';
import { adopt, type LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { policyNow } from '../../src/daemon/put-right.js';
import { windowChange } from '../../src/daemon/windows.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import type { PolicyInput } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { lease } from '../../src/redis/scripts.js';
import { parseWindows } from '../../src/redis/windows.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const at = (iso: string) => Date.parse(iso);
/** 11-11 in Shanghai: from 11:50Z to 18:00Z. The day is a Wednesday. */
const BEFORE = at('2026-11-11T11:00:00Z');
const DURING = at('2026-11-11T12:00:00Z');
const AFTER = at('2026-11-11T18:00:00Z');
const input = {
  limiter: { ...address, rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
  profiles: { sale: { times: 3 } },
  schedule: [
    { profile: 'sale', on: '11-11', from: '19:50', to: '02:00', timezone: 'Asia/Shanghai' },
    { freeze: 'stocktaking', on: 'thu', from: '01:00', to: '03:00' },
  ],
} satisfies PolicyInput;
let server: TestRedis;
let redis: Redis;
let adopted: LoadedPolicy;
let token = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => begin({}));

async function begin(more: Partial<PolicyInput>): Promise<void> {
  await redis.flushall();
  const policy = resolvePolicy({ ...input, ...more });
  adopted = { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
  await adopt(redis, adopted, { actor: { kind: 'autopilot', name: 'd' }, leaseMs: 0, nowMs: 0 });
  const granted = await lease(redis, { keys, op: 'acquire', owner: 'd', leaseMs: 600_000 });
  if (granted.status !== 'held') throw new Error('no lease');
  token = granted.token;
}

const params = async () => (await readParams(redis, address)).params!;

async function store(
  change: ParamChange,
  cause: 'policy' | 'person',
  nowMs: number,
  reason: string,
) {
  const seen = await params();
  const authority =
    cause === 'person'
      ? ({ kind: 'person' } as const)
      : ({ kind: 'lease', owner: 'd', token } as const);
  const reply = await write(
    redis,
    address,
    {
      ...{ authority, expected: seen, change, cause, reason, sentence: reason },
      ...{ actor: { kind: 'autopilot', name: 'd' }, before: null, after: null },
      policyHash: seen.policyHash,
    },
    { leaseMs: cause === 'person' ? 0 : 60_000, nowMs, nowUs: nowMs * 1000 },
  );
  expect(reply).toMatchObject({ status: 'ok' });
}

/** One turn's look: what is due is written. Returns its reason, or null. */
async function turn(nowMs: number): Promise<string | null> {
  const due = windowChange(adopted, await params(), nowMs);
  if (due === null) return null;
  await store(due.change, 'policy', nowMs, due.reason);
  return due.reason;
}

test('bounds × 3 while it holds, and back; each edge is one entry; the rate in force stays within them', async () => {
  await store({ rate: 350, inFlightMax: 40 }, 'person', BEFORE, 'x');
  expect(await turn(BEFORE)).toBeNull();
  const begins = windowChange(adopted, await params(), DURING)!;
  expect(begins.sentence).toBe(
    'Profile sale holds until 2026-11-11T18:00:00Z, bounds of the rate 20 … 400 → 60 … 1200/s, rate 350/s stays.',
  );
  expect(await turn(DURING)).toBe('window_begins');
  expect(await turn(DURING + 1000)).toBeNull();
  const held = await params();
  expect(held).toMatchObject({
    rate: 350,
    minRate: 60,
    maxRate: 1200,
    maxInFlight: 192,
    safeRate: 100,
  });
  expect(parseWindows(held.windows).profile).toMatchObject({ name: 'sale', untilMs: AFTER });
  expect(policyNow(adopted.policy, held)).toMatchObject({
    profile: 'sale',
    policy: { bounds: { rate: { min: 60, max: 1200 } } },
  });
  // A daemon's beat of the last minute: else the limits would have gone to their safe values by now.
  await store({ rate: 900 }, 'policy', AFTER - 2000, 'x');
  expect(await turn(AFTER - 1)).toBeNull();
  expect(await turn(AFTER)).toBe('window_ends');
  expect(await params()).toMatchObject({ rate: 400, minRate: 20, maxRate: 400, windows: '' });
  const reasons = (await readEntries(redis, address)).entries.map((entry) => entry.body.reason);
  expect(reasons.filter((reason) => reason.startsWith('window_'))).toHaveLength(2);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('C88: a daemon that was away over an edge, or starts in the middle, sets it right at its first turn', async () => {
  expect(await turn(DURING + 3_600_000)).toBe('window_begins');
  // It comes back a day later: nothing of the window is left.
  expect(await turn(at('2026-11-13T12:00:00Z'))).toBe('window_ends');
  expect(await turn(at('2026-11-13T12:00:01Z'))).toBeNull();
});

test('I7: under a person’s pin a profile moves bounds and no value', async () => {
  await store({ rate: 15, pinnedUntil: AFTER + 3_600_000, heldBy: 'kim' }, 'person', BEFORE, 'pin');
  expect(await turn(DURING)).toBe('window_begins');
  expect(await params()).toMatchObject({ rate: 15, maxRate: 1200, heldBy: 'kim' });
  expect(await turn(AFTER)).toBe('window_ends');
  expect(await params()).toMatchObject({ rate: 15, maxRate: 400, heldBy: 'kim' });
});

test('in mode recommend the profile’s numbers are enforced, and the policy’s own afterwards', async () => {
  await begin({ mode: 'recommend' });
  await turn(DURING);
  expect(await params()).toMatchObject({ rate: 300, capacity: 600, inFlightMax: 60 });
  await turn(AFTER);
  expect(await params()).toMatchObject({ rate: 100, capacity: 200, inFlightMax: 20 });
});

const FROZEN = at('2026-11-12T01:00:00Z');
const THAWED = at('2026-11-12T03:00:00Z');

test('a scheduled freeze begins, holds, and ends in one entry; the law is told who froze it', async () => {
  expect(await turn(FROZEN)).toBe('window_begins');
  expect(await params()).toMatchObject({ frozenUntil: THAWED, heldBy: 'the schedule' });
  const change = windowChange(adopted, await params(), THAWED)!;
  expect(change.sentence).toBe('The scheduled freeze ends: stocktaking.');
  expect(await turn(THAWED)).toBe('window_ends');
  expect(await params()).toMatchObject({ frozenUntil: 0, heldBy: '', windows: '' });
});

test('one that a person thawed stays thawed until its next window', async () => {
  await turn(FROZEN);
  await store({ frozenUntil: 0, heldBy: '' }, 'person', FROZEN + 60_000, 'thaw');
  expect(await turn(FROZEN + 61_000)).toBeNull();
  expect((await params()).frozenUntil).toBe(0);
  expect(await turn(THAWED)).toBe('window_ends');
  expect(await turn(FROZEN + 7 * 86_400_000)).toBe('window_begins');
  expect((await params()).frozenUntil).toBeGreaterThan(THAWED);
});

test('under a person’s hold it waits, and begins once the hold has ended within the window', async () => {
  const hold = { frozenUntil: FROZEN + 600_000, heldBy: 'kim' };
  await store(hold, 'person', BEFORE, 'freeze');
  expect(await turn(FROZEN)).toBeNull();
  expect(await params()).toMatchObject(hold);
  // The owner clears the lapsed hold in an entry of its own.
  await store({ frozenUntil: 0, heldBy: '' }, 'person', FROZEN + 601_000, 'thaw');
  expect(await turn(FROZEN + 602_000)).toBe('window_begins');
  expect(await params()).toMatchObject({ frozenUntil: THAWED, heldBy: 'the schedule' });
});

test('a policy without the window ends its freeze at once; nobody but people ends a person’s', async () => {
  await turn(FROZEN);
  const policy = resolvePolicy({ ...input, schedule: [input.schedule[0]!] });
  adopted = { ...adopted, policy };
  expect(await turn(FROZEN + 1000)).toBe('window_ends');
  expect(await params()).toMatchObject({ frozenUntil: 0, heldBy: '' });
});

test('I11: with no daemon the limits of a profile go to the policy’s own safe values, and a scheduled freeze holds them', async () => {
  const { effective } = await import('../../src/redis/effective.js');
  await turn(DURING);
  await store({ rate: 900 }, 'policy', DURING + 1000, 'x');
  const lost = effective(await params(), DURING + 600_000);
  expect([lost.gliding, lost.rate]).toEqual([true, 100]);
  await turn(AFTER);
  await turn(FROZEN);
  expect(effective(await params(), THAWED - 1).gliding).toBe(false);
  expect(effective(await params(), THAWED + 600_000).gliding).toBe(true);
});
