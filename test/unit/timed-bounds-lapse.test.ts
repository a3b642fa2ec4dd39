/** Timed bounds through the real script at injected times: set, kept by an adoption, lapsed with and without a daemon. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readParams, write } from '../../src/actuate/actuator.js';
import { adopt, type LoadedPolicy } from '../../src/actuate/adopt.js';
import { adoptedParams, createdParams } from '../../src/actuate/adopted-params.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { clearBounds, setBounds } from '../../src/actuate/verbs/bounds.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import type { Planner } from '../../src/actuate/verbs/plan.js';
import { rollback } from '../../src/actuate/verbs/rollback.js';
import { policyNow } from '../../src/daemon/put-right.js';
import { windowChange } from '../../src/daemon/windows.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import type { PolicyInput } from '../../src/policy/schema.js';
import { effective } from '../../src/redis/effective.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { lease } from '../../src/redis/scripts.js';
import { parseWindows } from '../../src/redis/windows.js';
import { driftOf } from '../../src/view/plan-owners.js';
import { holdsOf } from '../../src/view/status.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const HOUR = 3_600_000;
/** A Wednesday; the night's profile holds from 13:00 to 15:00. */
const NOON = Date.parse('2026-11-11T12:00:00Z');
const input = {
  limiter: { ...address, rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  whenLost: { after: '60s', over: '60s' },
  mode: 'auto',
  control: { law: 'step' },
  profiles: { night: { bounds: { rate: { min: 20, max: 300 } } } },
  schedule: [{ profile: 'night', on: '2026-11-11', from: '13:00', to: '15:00', timezone: 'UTC' }],
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

function loaded(more: Partial<PolicyInput>): LoadedPolicy {
  const policy = resolvePolicy({ ...input, ...more });
  return { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
}

async function begin(more: Partial<PolicyInput>): Promise<void> {
  await redis.flushall();
  adopted = loaded(more);
  const actor = { kind: 'autopilot', name: 'd' } as const;
  await adopt(redis, adopted, { actor, leaseMs: 0, nowMs: NOON });
  const keys = limiterKeys(address);
  const granted = await lease(redis, { keys, op: 'acquire', owner: 'd', leaseMs: 600_000 });
  if (granted.status !== 'held') throw new Error('no lease');
  token = granted.token;
}

const params = async () => (await readParams(redis, address)).params!;

function person(planner: Planner, nowMs: number) {
  return applyVerb(redis, address, planner, {
    ...{ actor: 'ada', reason: 'sale', dryRun: false, nowMs: () => nowMs, nowUs: nowMs * 1000 },
    approve: async () => true,
  });
}

async function daemon(
  request: { change: ParamChange; reason: string; refloor?: 'empty' | 'full' | number | undefined },
  nowMs: number,
) {
  const seen = await params();
  const reply = await write(
    redis,
    address,
    {
      ...{ authority: { kind: 'lease', owner: 'd', token }, expected: seen, cause: 'policy' },
      ...{ sentence: request.reason, before: null, after: null, policyHash: seen.policyHash },
      ...{ actor: { kind: 'autopilot', name: 'd' } },
      ...request,
    } as Parameters<typeof write>[2],
    { leaseMs: 60_000, nowMs, nowUs: nowMs * 1000 },
  );
  expect(reply).toMatchObject({ status: 'ok' });
}

/** One turn's look: what is due is written. Returns its reason, or null. */
async function turn(nowMs: number): Promise<string | null> {
  const due = windowChange(adopted, await params(), nowMs);
  if (due === null) return null;
  await daemon(due, nowMs);
  return due.reason;
}

const raise = (rate: number, nowMs: number) => daemon({ change: { rate }, reason: 'x' }, nowMs);

test('I1, I2: wider bounds hold until their time, then what lies above the policy comes back; each is one entry', async () => {
  expect(await person(setBounds({ rateMax: 600 }, HOUR / 2), NOON)).toMatchObject({
    status: 'done',
  });
  const held = await params();
  expect(held).toMatchObject({ rate: 100, minRate: 20, maxRate: 600, safeRate: 100 });
  expect(policyNow(adopted.policy, held)).toMatchObject({
    bounds: { rate: { max: 600 } },
    policy: { bounds: { rate: { min: 20, max: 600 } } },
  });
  expect(holdsOf(held, NOON)).toEqual([
    {
      ...{ kind: 'bounds', by: 'ada', untilMs: NOON + HOUR / 2, leftMs: HOUR / 2 },
      breakerHeld: false,
    },
  ]);
  expect(driftOf({ policy: adopted.policy, params: held, nowMs: NOON, entries: [] })).toEqual([]);
  await raise(550, NOON + 60_000);
  expect(await turn(NOON + HOUR / 2 - 1)).toBeNull();
  // A beat of the last minute: else the limits would have gone to their safe values by now.
  await raise(550, NOON + HOUR / 2 - 1);
  const due = windowChange(adopted, await params(), NOON + HOUR / 2)!;
  expect(due.sentence).toBe(
    'The time of the bounds by ada is over, bounds of the rate 20 … 600 → 20 … 400/s, rate 550/s → 400/s.',
  );
  expect(await turn(NOON + HOUR / 2)).toBe('bounds_lapsed');
  expect(await params()).toMatchObject({ rate: 400, maxRate: 400, windows: '' });
  const [newest] = (await readEntries(redis, address)).entries;
  expect(newest!.body.reason).toBe('bounds_lapsed');
  const [set] = (await readEntries(redis, address, { reason: 'bounds_set' })).entries;
  expect(set!.body).toMatchObject({
    actor: { kind: 'person', name: 'ada' },
    detail: {
      until: NOON + HOUR / 2,
      bounds: { before: { rate: { max: 400 } }, after: { rate: { max: 600 } } },
    },
  });
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('bounds that lapse raise nothing: what lies below the policy’s minimum is left to the law', async () => {
  await person(setBounds({ rateMin: 5, inFlightMin: 1 }, HOUR / 2), NOON);
  await daemon({ change: { rate: 8, inFlightMax: 1 }, reason: 'x' }, NOON + HOUR / 2 - 1);
  expect(await turn(NOON + HOUR / 2)).toBe('bounds_lapsed');
  expect(await params()).toMatchObject({ rate: 8, inFlightMax: 1, minRate: 20, minInFlight: 2 });
});

test('pin and rollback clamp to them; a pin above the policy is lowered when they lapse, and stays held', async () => {
  await expect(person(pin({ rate: 500 }, 2 * HOUR), NOON)).rejects.toThrow(/0 … 400/);
  await person(setBounds({ rateMax: 600 }, HOUR / 2), NOON);
  await person(pin({ rate: 500 }, 3 * HOUR), NOON + 1000);
  expect(await turn(NOON + HOUR / 2)).toBe('bounds_lapsed');
  expect(await params()).toMatchObject({ rate: 400, maxRate: 400, heldBy: 'ada' });
  const after = {
    mode: 'auto',
    state: 'closed',
    rate: 500,
    capacity: 200,
    inFlightMax: 20,
  } as const;
  const back = await person(rollback({ epoch: 1, revision: 1, after }, HOUR), NOON + HOUR / 2 + 1);
  expect(back).toMatchObject({ plan: { after: { rate: 400 } } });
});

test('I11: with every daemon dead a lapsed bound binds people no more, and the limits glide to the policy’s safe values', async () => {
  await person(setBounds({ rateMax: 600 }, HOUR / 2), NOON);
  await raise(550, NOON + 1000);
  const lost = effective(await params(), NOON + HOUR);
  expect([lost.gliding, lost.rate]).toEqual([true, 100]);
  // Nobody has written that they are over, and yet:
  await expect(person(pin({ rate: 500 }, HOUR), NOON + HOUR)).rejects.toThrow(/0 … 400/);
  expect(await turn(NOON + HOUR + 1000)).toBe('bounds_lapsed');
  // A narrower maximum keeps the way to the safe values below it.
  await person(setBounds({ rateMax: 50 }, 4 * HOUR), NOON + HOUR + 2000);
  expect(effective(await params(), NOON + 2 * HOUR)).toMatchObject({ gliding: true, rate: 50 });
});

test('an adopted policy and a profile change what lies below; the bounds of a person stay until their time', async () => {
  await person(setBounds({ rateMax: 600 }, 2 * HOUR), NOON);
  // The night has 300 at most; the person said 600.
  expect(await turn(NOON + HOUR)).toBe('window_begins');
  expect(await params()).toMatchObject({ maxRate: 600 });
  expect(parseWindows((await params()).windows)).toMatchObject({
    profile: { name: 'night' },
    bounds: { by: 'ada' },
  });
  const next = loaded({ bounds: { ...input.bounds, rate: { min: 30, max: 500 } } });
  const told = adoptedParams(next, await params(), NOON + HOUR + 60_000);
  expect(told.sentence).toContain('profile night holds; the bounds of ada stay');
  await daemon({ change: told.change, reason: 'policy_adopted' }, NOON + HOUR + 60_000);
  adopted = next;
  expect(await params()).toMatchObject({ minRate: 20, maxRate: 600 });
  expect(await turn(NOON + 2 * HOUR)).toBe('bounds_lapsed');
  expect(await params()).toMatchObject({ minRate: 20, maxRate: 300 });
  expect(await turn(NOON + 3 * HOUR)).toBe('window_ends');
  expect(await params()).toMatchObject({ minRate: 30, maxRate: 500, windows: '' });
});

test('params that Redis lost come back with them, or without when their time is over', async () => {
  await person(setBounds({ rateMax: 600 }, HOUR / 2), NOON);
  await raise(550, NOON + 1000);
  const last = await params();
  const soon = createdParams(adopted, last, NOON + 60_000).change;
  expect(soon).toMatchObject({ rate: 550, maxRate: 600, windows: last.windows });
  const late = createdParams(adopted, last, NOON + HOUR / 2).change;
  expect(late).toMatchObject({ rate: 400, maxRate: 400, windows: '' });
});

test('in recommend they bound the policy’s numbers, which are back when they end', async () => {
  await begin({ mode: 'recommend' });
  await person(setBounds({ rateMax: 80, rateMin: 10 }, HOUR / 2), NOON);
  expect(await params()).toMatchObject({ rate: 80, maxRate: 80 });
  await person(clearBounds(), NOON + 1000);
  expect(await params()).toMatchObject({ rate: 100, maxRate: 400, windows: '' });
});

test('another person’s bounds made meanwhile are shown before a yes counts', async () => {
  let shown = 0;
  const outcome = await applyVerb(redis, address, setBounds({ rateMax: 600 }, HOUR), {
    ...{ actor: 'ada', dryRun: false, nowMs: () => NOON, nowUs: NOON * 1000 },
    async approve({ notes }) {
      shown += 1;
      if (shown === 1) await person(setBounds({ rateMax: 500 }, HOUR), NOON);
      else expect(notes.join()).toContain('They take the place of those by ada');
      return true;
    },
  });
  expect([outcome.status, shown]).toEqual(['done', 2]);
});
