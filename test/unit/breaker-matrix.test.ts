/** The breaker, every state against everything that a tick can bring: news, no news, old news, persons, other limiters. */
import { describe, expect, test } from 'vitest';
import type { BreakerMemory } from '../../src/decide/breaker-types.js';
import type { LimiterState } from '../../src/redis/params.js';
import { createDecideState, type DecideState, turn } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const STATES: LimiterState[] = ['closed', 'open', 'half-open', 'recovering'];
const GENERATION = 4;
const ROUND = 1_000;

const policy = policyOf({
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    errors: { source: 'telemetry', stat: 'errorRatio' },
    waits: { source: 'postgres', stat: 'waiting', url: 'postgres://db/shop' },
  },
  breaker: {
    ...{ on: 'errors', above: '50%', openFor: '5s' },
    or: [{ on: 'waits', above: 20, per: '10s' }],
    upstream: 'bank',
  },
});

const p95 = { value: 125, fresh: true, ageMs: 300, count: 400 };
const waits = (value: number | null, fresh = true) => ({
  p95,
  waits: {
    value,
    fresh,
    ageMs: 0,
    count: 1,
    ...(value === null && { reason: 'timeout' as const }),
  },
});
const counted = (ok: number, failed: number, generation: number | null = GENERATION) => ({
  outcomes: { generation, ok, failed, matching: failed, tick: { ok, matching: failed } },
});
const quiet = counted(0, 0);
const word = (state: 'open' | 'probing' | 'passed', round: number, leftMs = 3000) => ({
  ...quiet,
  upstream: { name: 'bank', by: 'refunds', state, round, leftMs },
});

interface Input {
  parts: SampleParts & { upstream?: ReturnType<typeof word>['upstream'] };
  memory?: Partial<BreakerMemory>;
  /** Where each state goes, in the order of `STATES`; `-`: it stays. */
  goes: [LimiterState | '-', LimiterState | '-', LimiterState | '-', LimiterState | '-'];
}

const STAY: Input['goes'] = ['-', '-', '-', '-'];
const stale = { traffic: { fresh: false }, outcomes: { fresh: false } };

/** What the table must say, written out apart from it. */
const INPUTS: Record<string, Input> = {
  'good answers': { parts: counted(100, 0), goes: ['-', '-', 'recovering', '-'] },
  'one good answer': { parts: counted(1, 0), goes: STAY },
  'failures alone': { parts: counted(0, 100), goes: ['open', '-', 'open', 'open'] },
  'too few failures for a level': { parts: counted(0, 3), goes: ['-', '-', 'open', '-'] },
  'failures below the level': { parts: counted(80, 20), goes: ['-', '-', 'recovering', '-'] },
  'failures of an older generation': { parts: counted(0, 100, GENERATION - 1), goes: STAY },
  'failures of a newer generation': { parts: counted(0, 100, GENERATION + 1), goes: STAY },
  'good answers of an older generation': { parts: counted(100, 0, GENERATION - 1), goes: STAY },
  'failures that were counted before': {
    parts: { outcomes: { ...counted(0, 100).outcomes, tick: { ok: 0, matching: 0 } } },
    goes: STAY,
  },
  'failures in a reading that is not fresh': {
    parts: { traffic: { fresh: false }, outcomes: { ...counted(0, 100).outcomes, fresh: false } },
    goes: STAY,
  },
  'no outcome so far': { parts: counted(0, 0, null), goes: STAY },
  'no traffic': {
    parts: { ...quiet, traffic: { admittedRate: 0, answers: 0, okRate: 0, offeredRate: 0 } },
    goes: STAY,
  },
  'no telemetry': { parts: stale, goes: STAY },
  'every signal missing': { parts: { ...stale, signals: waits(null, false) }, goes: STAY },
  'probes that hang beyond the deadline': {
    parts: { ...quiet, traffic: { admittedRate: 1, answers: 0, okRate: 0 } },
    memory: { probingMs: 29_500 },
    goes: ['-', '-', 'open', '-'],
  },
  'the deadline over, but telemetry is away': {
    parts: stale,
    memory: { probingMs: 29_500 },
    goes: STAY,
  },
  'database waits, for long enough': {
    parts: { ...counted(100, 0), signals: waits(30) },
    memory: { aboveMs: [-1, 9_000] },
    goes: ['open', '-', 'open', 'open'],
  },
  'database waits, not yet for long': {
    parts: { ...quiet, signals: waits(30) },
    memory: { aboveMs: [-1, 2_000] },
    goes: STAY,
  },
  'database waits that nobody reads any more': {
    parts: { ...quiet, signals: waits(null, false) },
    memory: { aboveMs: [-1, 60_000] },
    goes: STAY,
  },
  'another limiter of the upstream opens': {
    parts: word('open', ROUND + 1),
    goes: ['open', '-', 'open', 'open'],
  },
  'it opened in a round that is known': { parts: word('open', ROUND), goes: STAY },
  'its open time is over': { parts: word('open', ROUND + 1, 0), goes: STAY },
  'its probes passed': { parts: word('passed', ROUND), goes: ['-', '-', 'recovering', '-'] },
  'its probes passed, in another round': { parts: word('passed', ROUND - 1), goes: STAY },
  'it probes': { parts: word('probing', ROUND + 1), goes: STAY },
};

function memoryOf(state: LimiterState, more: Partial<BreakerMemory> = {}): DecideState {
  const fresh = createDecideState(policy);
  const stopped = state === 'open' || state === 'half-open';
  const numbers = { rate: 100, inFlightMax: 24 };
  const breaker: BreakerMemory = {
    ...fresh.memory.breaker,
    ...{ state, inStateMs: 3000, level: 1, round: ROUND, joined: stopped ? 1 : 0 },
    ...(state !== 'closed' && { resume: numbers }),
    ...(stopped && { stored: numbers }),
    ...more,
  };
  return { ...fresh, memory: { ...fresh.memory, breaker } };
}

function sampleIn(state: LimiterState, { upstream, ...parts }: Input['parts'], inForce = {}) {
  const rate = { closed: 100, open: 0, 'half-open': 1, recovering: 50 }[state];
  const target = { rate: rate || 100, capacity: 50, inFlightMax: 24 };
  if (state === 'half-open') target.rate = 100;
  const sample = sampleOf({
    ...parts,
    inForce: { ...{ state, rate, generation: GENERATION, target }, ...inForce },
  });
  return upstream === undefined ? sample : { ...sample, upstream };
}

describe.each(Object.entries(INPUTS))('%s', (_name, { parts, memory, goes }) => {
  test.each(STATES.map((state, i) => [state, goes[i] === '-' ? state : goes[i]!] as const))(
    'in %s: %s',
    (state, next) => {
      const before = memoryOf(state, memory);
      const sample = sampleIn(state, parts);
      const { state: after, decision } = turn(policy, before, sample);
      expect(decision.state).toBe(next);
      if (next === 'open' && state !== 'open') {
        expect(decision).toMatchObject({ change: true, cause: 'breaker', rate: 100 });
        expect(decision.openForMs).toBeGreaterThanOrEqual(100);
        expect(after.memory.breaker).toMatchObject({ joined: 1, resume: { rate: 100 } });
        expect(after.memory.breaker.level).toBeCloseTo(2, 1);
        expect(after.memory.breaker.round).toBeGreaterThan(ROUND);
      }
      if (state === 'half-open' && next === 'recovering') expect(decision.rate).toBe(50);
      // Nothing here is remembered that a checkpoint could not hold, or that depends on the past by reference.
      expect(turn(policy, JSON.parse(JSON.stringify(before)), sample).decision).toEqual(decision);
    },
  );

  test.each(STATES)('in %s, the breaker held by a person: it stays', (state) => {
    const sample = sampleIn(state, parts, { held: 'pinned', holdBreaker: true });
    const { decision } = turn(policy, memoryOf(state, memory), sample);
    // What a person holds, a slow start that is over does not outlast.
    expect(decision.state).toBe(state === 'recovering' ? 'recovering' : state);
    expect(decision.change).toBe(false);
  });

  test.each(STATES)('in %s, values held by a person: they move neither there nor back', (state) => {
    const sample = sampleIn(state, parts, { held: 'frozen' });
    const { decision } = turn(policy, memoryOf(state, memory), sample);
    expect(decision.rate).toBe(sample.inForce.target.rate);
    expect(decision.inFlightMax).toBe(24);
    const moved = decision.state === 'recovering' ? 'closed' : decision.state;
    const back = state === 'half-open' && decision.state === 'closed';
    expect([state, 'open', 'closed']).toContain(back ? 'closed' : moved);
  });
});
