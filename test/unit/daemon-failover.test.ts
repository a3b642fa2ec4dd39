/** What a turn makes of another Redis server: a new epoch, what was lost put back, and a lower rate for a while. */
import { describe, expect, test } from 'vitest';
import { type FailoverMemory, failoverStep } from '../../src/daemon/failover.js';
import { readIdentity, type ServerIdentity } from '../../src/daemon/server-watch.js';
import { inForceView } from '../../src/daemon/view.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import type { Params } from '../../src/redis/params.js';

const NOW = 1_700_000_000_000;
const input: PolicyInput = {
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20, coldStart: 0.25 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
};
const OLD: FailoverMemory = { runId: 'old', lowered: null };

function server(runId: string): ServerIdentity {
  return { runId, replId2: '0000', secondOffset: -1 };
}

function params(overrides: Partial<Params> = {}): Params {
  return {
    ...{ v: 1, epoch: 5, revision: 7, accrued: 0, subjectAccrued: 0, floor: 0, subjectFloor: 0 },
    ...{ changedAt: (NOW - 10_000) * 1000, validUntil: NOW + 500, fence: 3, policyHash: 'abc' },
    ...{ windows: '', ...paramsFromPolicy(policySchema.parse(input)) },
    ...overrides,
  } as Params;
}

function step(
  of: Partial<Parameters<typeof failoverStep>[0]> & {
    now?: Partial<Params>;
    more?: Partial<PolicyInput>;
  } = {},
) {
  const { now = {}, more = {}, ...rest } = of;
  const p = params(now);
  return failoverStep({
    policy: policySchema.parse({ ...input, ...more }),
    params: p,
    view: inForceView(p, rest.nowMs ?? NOW, null).view,
    nowMs: NOW,
    last: p,
    server: server('new'),
    servers: { serves: () => false },
    memory: OLD,
    restored: false,
    ...rest,
  });
}

test('the same server, or one seen for the first time: nothing is due', () => {
  expect(step({ server: server('old') })).toEqual({ repair: null, memory: OLD });
  expect(step({ memory: null })).toEqual({ repair: null, memory: { runId: 'new', lowered: null } });
  expect(step({ server: null, memory: null })).toEqual({ repair: null, memory: null });
});

test('a slot that moved between servers that live is no failover', () => {
  const moved = step({ servers: { serves: (runId) => runId === 'old' } });
  expect(moved).toEqual({ repair: null, memory: { runId: 'new', lowered: null } });
});

test('another server: a new epoch, floors by coldStart, the rate halved for 30 s', () => {
  const { repair, memory } = step();
  expect(repair).toMatchObject({
    change: { rate: 50 },
    reason: 'redis_failover',
    cause: 'settle',
    newEpoch: NOW,
    refloor: 0.25,
    detail: { server: { from: 'old', to: 'new' } },
  });
  expect(repair!.sentence).toContain('Rate 100/s → 50/s for 30 s');
  expect(memory).toEqual({ runId: 'new', lowered: { to: 50, from: 100, untilMs: NOW + 30_000 } });
});

test('factor and time by policy; never below the bounds; a factor of 1 lowers nothing', () => {
  const mild = step({ more: { onFailover: { factor: 0.8, for: '10s' } } });
  expect(mild.memory!.lowered).toEqual({ to: 80, from: 100, untilMs: NOW + 10_000 });
  expect(step({ now: { rate: 30 } }).repair!.change).toEqual({ rate: 20 });
  expect(step({ now: { rate: 20 } }).repair!.change).toEqual({});
  const none = step({ more: { onFailover: { factor: 1 } } });
  expect([none.repair!.change, none.memory!.lowered]).toEqual([{}, null]);
});

test('I12, I7: outside auto, under a hold and while tripped the rate stays; the epoch is new all the same', () => {
  for (const now of [
    { mode: 'recommend' },
    { pinnedUntil: NOW + 1000 },
    { frozenUntil: -1 },
    { state: 'open', openUntil: NOW + 9000, openForMs: 9000 },
  ] as Partial<Params>[]) {
    const { repair, memory } = step({ now });
    expect(repair!.change).toEqual({});
    expect(repair!.newEpoch).toBe(NOW);
    expect(memory!.lowered).toBeNull();
  }
});

describe('writes that were lost', () => {
  test('what had been in force comes back, what a person did among it; trips are never counted back', () => {
    const last = params({
      revision: 9,
      rate: 80,
      pinnedUntil: NOW + 60_000,
      heldBy: 'kim',
      generation: 2,
    });
    const { repair } = step({ last, now: { generation: 3 } });
    expect(repair).toMatchObject({
      reason: 'writes_lost',
      change: { rate: 80, pinnedUntil: NOW + 60_000, heldBy: 'kim' },
      detail: { lostEpoch: 5, lostRevision: 9 },
    });
    expect(repair!.change).not.toHaveProperty('generation');
    expect(repair!.sentence).toContain('put back: rate, pinnedUntil, heldBy');
  });

  test('a trip that was lost is a trip again; a release that was lost is one again', () => {
    const open = params({
      revision: 8,
      state: 'open',
      openUntil: NOW + 4000,
      openForMs: 5000,
      generation: 1,
    });
    expect(step({ last: open }).repair!.change).toEqual({
      ...{ state: 'open', openUntil: NOW + 4000, generation: 1 },
    });
    const free = params({ revision: 8, rate: 60 });
    const { repair } = step({ last: free, now: { rate: 10, pinnedUntil: -1, heldBy: 'kim' } });
    expect(repair!.change).toMatchObject({ pinnedUntil: 0, heldBy: '', rate: 30 });
  });

  test('found by the revision alone too; the epoch lies above what was lost', () => {
    const last = params({ epoch: NOW + 5000, revision: 2 });
    const { repair, memory } = step({ last, server: server('old') });
    expect(repair!.newEpoch).toBe(NOW + 5001);
    expect(repair!.sentence).toContain('went back to an earlier revision');
    expect(memory!.runId).toBe('old');
  });
});

test('params that were created anew on it have an epoch and floors of their own', () => {
  const { repair } = step({ restored: true });
  expect(repair).not.toHaveProperty('newEpoch');
  expect(repair).not.toHaveProperty('refloor');
  expect(repair!.change).toEqual({ rate: 50 });
  expect(step({ restored: true, now: { pinnedUntil: -1 } }).repair).toBeNull();
});

describe('when its time is over', () => {
  const memory = { runId: 'old', lowered: { to: 50, from: 100, untilMs: NOW } };
  const later = (of: Parameters<typeof step>[0]) => step({ memory, server: server('old'), ...of });

  test('the rate goes back to where it was, unless the law or a person has moved it', () => {
    expect(later({ now: { rate: 50 } }).repair).toMatchObject({
      change: { rate: 100 },
      reason: 'failover_over',
    });
    for (const now of [
      { rate: 40 },
      { rate: 50, pinnedUntil: -1 },
      { rate: 50, frozenUntil: -1 },
    ]) {
      expect(later({ now })).toEqual({ repair: null, memory: { runId: 'old', lowered: null } });
    }
  });

  test('not before; a second failover within it begins it anew, lowers nothing again, and leads back all the way', () => {
    const before = later({ now: { rate: 50 }, nowMs: NOW - 1 });
    expect(before).toEqual({ repair: null, memory });
    const again = later({ now: { rate: 50 }, nowMs: NOW - 1, server: server('third') });
    expect(again.memory!.lowered).toEqual({ to: 50, from: 100, untilMs: NOW - 1 + 30_000 });
    expect(again.repair!.change).toEqual({});
    expect(again.repair!.sentence).toContain('50/s stays for another 30 s');
    // What the law has cut meanwhile is its own: neither lowered nor given back.
    const cut = later({ now: { rate: 30 }, nowMs: NOW - 1, server: server('third') });
    expect([cut.repair!.change, cut.memory!.lowered]).toEqual([{}, null]);
  });

  test('servers that take over from each other without end halve the rate once', () => {
    let known: FailoverMemory = OLD;
    let rate = 100;
    let nowMs = NOW;
    for (let i = 0; i < 50; i++) {
      nowMs += 5_000;
      const now = { rate };
      const flap = step({ memory: known, server: server(`s${i}`), now, nowMs });
      known = flap.memory!;
      rate = flap.repair?.change.rate ?? rate;
      expect(rate).toBe(50);
    }
    const later = { rate, validUntil: nowMs + 60_000 };
    const end = step({ memory: known, server: server('s49'), now: later, nowMs: nowMs + 30_000 });
    expect(end.repair).toMatchObject({ change: { rate: 100 }, reason: 'failover_over' });
  });
});

test('what a server says of itself is read; a replica tells nothing', () => {
  const info = (role: string) =>
    `# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n# Replication\r\nrole:${role}\r\nmaster_replid:r1\r\nmaster_replid2:r0\r\nmaster_repl_offset:42\r\nsecond_repl_offset:40\r\n`;
  expect(readIdentity(info('master'))).toEqual({
    ...{ runId: 'abc', replId2: 'r0', secondOffset: 40 },
  });
  expect(readIdentity(info('slave'))).toBeNull();
  expect(readIdentity('')).toBeNull();
});
