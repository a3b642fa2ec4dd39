/** What persons do in every state of the breaker, with an autopilot and hours after the last one died. */
import { expect, test } from 'vitest';
import { verifyAudit } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { reset, trip } from '../../src/actuate/verbs/breaker.js';
import { freeze, thaw } from '../../src/actuate/verbs/freeze.js';
import { pin, release } from '../../src/actuate/verbs/pin.js';
import { rollback } from '../../src/actuate/verbs/rollback.js';
import type { ParamChange } from '../../src/redis/params.js';
import { seedParams } from '../support/seed-params.js';
import { S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const HOUR_MS = 3_600_000;
const T0_MS = T0 / 1000;
const STATES: Record<string, ParamChange> = {
  closed: {},
  open: { state: 'open', openUntil: T0_MS + 5_000, generation: 3 },
  'open until reset': { state: 'open', openUntil: -1, generation: 3 },
  'half-open by time': { state: 'open', openUntil: T0_MS + 500, generation: 3 },
  'half-open': { state: 'half-open', generation: 3 },
  recovering: { state: 'recovering', generation: 3 },
  'frozen, the breaker too': { frozenUntil: -1, holdBreaker: 1, heldBy: 'ada' },
  'pinned and open': { pinnedUntil: -1, heldBy: 'ada', state: 'open', openUntil: -1 },
};
const after = {
  mode: 'auto',
  state: 'closed',
  rate: 150,
  capacity: 100,
  inFlightMax: 16,
} as const;
const VERBS = {
  trip: trip(),
  'trip --for 1m': trip(60_000),
  'trip --hold': trip('until-ended'),
  reset: reset(),
  pin: pin({ rate: 90 }, HOUR_MS),
  freeze: freeze(HOUR_MS),
  'freeze --hold-breaker': freeze(HOUR_MS, { holdBreaker: true }),
  thaw: thaw(),
  release: release(),
  rollback: rollback({ epoch: 1, revision: 2, after }, HOUR_MS),
};
type Verb = keyof typeof VERBS;

async function act(state: string, afterUs: number, verb: Verb) {
  const { redis } = fixture;
  const limiter = fixture.limiter();
  const address = { name: limiter.keys.name };
  const base = { rate: 200, capacity: 100, inFlightMax: 32, safeRate: 40, safeInFlight: 8 };
  const seed = { ...base, minRate: 20, maxRate: 400, ...STATES[state] };
  await seedParams(redis, limiter.keys, seed, { nowUs: T0, refloor: 0.5 });
  const nowUs = T0 + afterUs;
  const peek = async (atUs: number) => {
    const { answers, inForce } = await limiter.call([{ cost: 0 }], atUs);
    return { remaining: answers[0]!.remaining, ...inForce };
  };
  const before = await peek(nowUs);
  const outcome = await applyVerb(redis, address, VERBS[verb], {
    ...{ actor: 'kim', dryRun: false, nowMs: () => nowUs / 1000, nowUs },
    approve: async () => true,
  });
  const now = await peek(nowUs);
  const entries = await redis.xlen(limiter.keys.audit);
  const { verdict } = await verifyAudit(redis, address);
  const openFor = await redis.hmget(limiter.keys.params, 'state', 'openUntil');
  const next = await limiter.one(nowUs);
  const late = await limiter.one(nowUs + 10 * 3600 * S);
  return { outcome, before, now, entries, verdict, next, late, held: openFor.join() === 'open,-1' };
}

test.each([
  ['an autopilot lives', 1 * S],
  ['none for three hours', 3 * 3600 * S],
])(
  'I3, I6, I7: one entry or none, no token more, and no limiter stays shut by itself; %s',
  async (_, afterUs) => {
    for (const state of Object.keys(STATES)) {
      for (const verb of Object.keys(VERBS) as Verb[]) {
        const { outcome, before, now, entries, verdict, next, late, held } = await act(
          state,
          afterUs,
          verb,
        );
        const at = `${verb} in ${state}`;
        expect(['done', 'nothing'], at).toContain(outcome.status);
        expect(entries, at).toBe(outcome.status === 'done' ? 2 : 1);
        expect(verdict, at).not.toBe('broken');
        expect(now.remaining, at).toBeLessThanOrEqual(before.remaining);
        // What a person holds open stays so; all else lets something through by then.
        expect(late.allowed, at).toBe(!held);
        if (verb.startsWith('trip') && outcome.status === 'done') {
          expect([now.state, next.allowed, next.reason], at).toEqual([
            'open',
            false,
            'breaker_open',
          ]);
        }
        if (verb === 'reset') expect(now.state, at).not.toBe('open');
        if (verb === 'pin') {
          expect(outcome.status, at).toBe('done');
          if (now.state === 'closed') expect(now.rate, at).toBe(90);
          expect(now.state, at).toBe(before.state);
        }
      }
    }
  },
);

test('who says a revision is asked again at each reading: what others wrote between two of them is seen', async () => {
  const { redis } = fixture;
  const limiter = fixture.limiter();
  const address = { name: limiter.keys.name };
  await seedParams(redis, limiter.keys, { rate: 200, capacity: 100 }, { nowUs: T0 });
  const options = { actor: 'kim', dryRun: false, nowMs: () => T0_MS, nowUs: T0 };
  const seen: number[] = [];
  const outcome = applyVerb(redis, address, pin({ rate: 90 }, HOUR_MS), {
    ...options,
    async approve() {
      const yes = { ...options, actor: 'ada', approve: async () => true };
      await applyVerb(redis, address, trip(), yes);
      return true;
    },
    check(_, { params }) {
      seen.push(params.revision);
      if (params.revision !== 1) throw new Error('it changed');
    },
  });
  await expect(outcome).rejects.toThrow('it changed');
  expect(seen).toEqual([1, 2]);
  expect(await redis.hget(limiter.keys.params, 'rate')).toBe('200');
});
