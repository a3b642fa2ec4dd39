/** One limiter whose breaker is decided by `turn` and written by the actuating script on a real Redis, in virtual time. Stage: test. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { write } from '../../src/actuate/actuator.js';
import type { Planner } from '../../src/actuate/verbs/plan.js';
import { inForceView, type StateSince } from '../../src/daemon/view.js';
import { changeOf } from '../../src/daemon/writer.js';
import type { InForceView } from '../../src/decide/types.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { LimiterState, ParamChange, Params } from '../../src/redis/params.js';
import { heartbeat, lease, take } from '../../src/redis/scripts.js';
import {
  createDecideState,
  type DecideState,
  type Decision,
  type Policy,
  reviveDecideState,
  turn,
} from '../../src/testing.js';
import { type SampleParts, sampleOf } from '../sim/fixtures.js';
import { seedParams, storedParams } from '../support/seed-params.js';

const T0_MS = 1_700_000_000_000;
const LEASE_MS = 3_000;
const OWNER = 'test';
/** Of the numbers that a bucket may have after it was emptied. */
const SLACK = 1.01;

export interface Rig {
  readonly view: InForceView;
  /** One second: what `parts` says of it is decided on, and written or beaten. */
  tick(parts: SampleParts): Promise<Decision>;
  /** Time alone, without a daemon. */
  wait(ms: number): Promise<void>;
  person(planner: Planner): Promise<void>;
  /** Another daemon goes on: from the checkpoint as JSON, or from nothing. */
  takeOver(from: 'checkpoint' | 'nothing'): void;
}

export async function createRig(redis: Redis, name: string, policy: Policy): Promise<Rig> {
  const address = { name };
  const keys = limiterKeys(address);
  let nowMs = T0_MS;
  const change: ParamChange = { ...paramsFromPolicy(policy), policyHash: '' };
  await seedParams(redis, keys, change, { nowUs: nowMs * 1000 });
  const granted = await lease(redis, {
    ...{ keys, op: 'acquire', owner: OWNER, leaseMs: LEASE_MS },
    nowUs: nowMs * 1000,
  } as Parameters<typeof lease>[1]);
  if (granted.status !== 'held') throw new Error('no lease');
  const { token } = granted;
  let state: DecideState = createDecideState(policy);
  let since: StateSince | null = null;
  let params: Params;
  let view: InForceView;
  /** Redis ms since when a bucket that was emptied by a trip may fill again, and the most it was paid since. */
  let filling: { tokens: number; atMs: number; rate: number } | null = null;

  async function look(): Promise<void> {
    params = (await storedParams(redis, keys))!;
    ({ view, since } = inForceView(params, nowMs, since));
    await checkTokens();
  }

  /** Leaving open never gives a burst: what a bucket holds is what was paid since, at the rates that were in force. */
  async function checkTokens(): Promise<void> {
    if (view.state === 'open') filling = { tokens: 0, atMs: nowMs, rate: 0 };
    if (filling === null) return;
    const rate = Math.max(view.rate, filling.rate);
    filling = {
      tokens: filling.tokens + (rate * (nowMs - filling.atMs)) / 1000,
      ...{ atMs: nowMs, rate: view.rate },
    };
    const { answers } = await take(redis, {
      ...{ keys, chargeByUs: 'any', shadow: false, nowUs: nowMs * 1000 },
      takes: [{ subject: null, cost: 0, priority: 'default' }],
      fallback: { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 },
    });
    expect(answers[0]!.remaining).toBeLessThanOrEqual(filling.tokens + SLACK);
    if (view.state === 'open') expect(answers[0]!.remaining).toBe(0);
  }

  async function written(
    request: Pick<Parameters<typeof write>[2], 'authority' | 'change' | 'cause'>,
  ): Promise<void> {
    const reply = await write(
      redis,
      address,
      {
        ...request,
        expected: { epoch: params.epoch, revision: params.revision },
        actor: { kind: 'person', name: 'test' },
        ...{ reason: 'test', sentence: 'test', before: null, after: null, policyHash: '' },
      },
      { leaseMs: LEASE_MS, nowMs, nowUs: nowMs * 1000 },
    );
    if (reply.status !== 'ok') throw new Error(`${reply.reason}: ${reply.detail}`);
  }

  await look();
  return {
    get view() {
      return view;
    },
    async tick(parts) {
      nowMs += 1000;
      // The lease is a key with a time of its own, and this time is not the test's.
      await redis.set(keys.lease, `${OWNER}:${token}`);
      await look();
      const sample = sampleOf({
        nowMs,
        ...parts,
        outcomes: { generation: view.generation, ...parts.outcomes },
        inForce: view,
      });
      const turned = turn(policy, state, sample);
      const { decision } = turned;
      state = turned.state;
      if (decision.change) {
        const authority = { kind: 'lease', owner: OWNER, token } as const;
        await written({ authority, change: changeOf(decision), cause: decision.cause });
      } else {
        const nowUs = nowMs * 1000;
        await heartbeat(redis, { keys, owner: OWNER, token, leaseMs: LEASE_MS, nowUs });
      }
      await look();
      return decision;
    },
    async wait(ms) {
      nowMs += ms;
      await look();
    },
    async person(planner) {
      const plan = planner({ limiter: name, params, nowMs, policy, actor: 'ada' });
      if (plan.kind === 'nothing') return;
      await written({ authority: { kind: 'person' }, change: plan.change, cause: 'person' });
      await look();
    },
    takeOver(from) {
      state =
        from === 'nothing'
          ? createDecideState(policy)
          : reviveDecideState(policy, JSON.parse(JSON.stringify(state)));
      since = null;
    },
  };
}

/** The moves that anything but a person may make in one step; time and a tick may both move it. */
export const MOVES: Record<LimiterState, readonly LimiterState[]> = {
  closed: ['closed', 'open', 'recovering'],
  open: ['open', 'half-open'],
  'half-open': ['half-open', 'open', 'recovering', 'closed'],
  recovering: ['recovering', 'open', 'closed'],
};
