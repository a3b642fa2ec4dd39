/** `confirm`: a cut by one signal alone waits for a second witness; a missing one confirms nothing. */
import { describe, expect, test } from 'vitest';
import { overloadOf } from '../../src/decide/overload.js';
import { formatFault } from '../../src/errors.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { byPolicy, type Change } from '../../src/sim/controllers.js';
import { runScenario } from '../../src/sim/run.js';
import type { Scenario } from '../../src/sim/scenario.js';
import { carriedOf, defaultService } from '../../src/sim/service.js';
import {
  createDecideState,
  type Policy,
  type PolicyInput,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

const LAWS = ['adaptive', 'aimd', 'pi'] as const;
const SIGNALS = {
  p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
  errors: { source: 'telemetry', stat: 'errorRatio' },
  dbWait: { source: 'postgres', stat: 'waiting', url: 'postgres://db' },
  pool: { source: 'telemetry', stat: 'poolWaiting' },
} as const;

function withWitness(
  law: (typeof LAWS)[number],
  confirm: NonNullable<NonNullable<PolicyInput['objective']>[string]['confirm']> = {
    dbWait: { above: 2 },
  },
): Policy {
  return policyOf({
    signals: SIGNALS,
    objective: { p95: { below: '250ms', confirm }, pool: { below: 10 } },
    control: { law },
    guards: { deadBand: 0, cooldown: 0 },
  });
}

const seen = (value: number, more: Partial<Sample['signals'][string]> = {}) => ({
  ...{ value, fresh: true, ageMs: 300, count: 400, ...more },
});
const LOST = { value: 9, fresh: false, ageMs: 9000, count: 1, reason: 'timeout' } as const;
const bound = { deniedByRate: 20, deniedByCap: 20, inFlight: 23 };

function decide(policy: Policy, signals: Sample['signals'], parts = {}) {
  const sample = sampleOf({ signals: { pool: seen(0), ...signals }, traffic: bound, ...parts });
  return turn(policy, createDecideState(policy), sample).decision;
}

describe.each(LAWS)('law %s', (law) => {
  const policy = withWitness(law);

  test('past its setpoint without a witness: neither cut nor raise, and the sentence says what it waits for', () => {
    const decision = decide(policy, { p95: seen(600), dbWait: seen(1) });
    expect(decision.change).toBe(false);
    expect(decision.why).toBe(
      'p95 600 ms beside the 250 ms setpoint, waits for dbWait > 2 as witness: hold',
    );
  });

  test('with a witness it cuts as any other', () => {
    const decision = decide(policy, { p95: seen(600), dbWait: seen(3) });
    const plain = policyOf({ ...policy, objective: { p95: { below: '250ms' } } });
    const same = decide(plain, { p95: seen(600), dbWait: seen(3) });
    expect(decision.reason).toMatch(/cut/);
    expect([decision.rate, decision.inFlightMax]).toEqual([same.rate, same.inFlightMax]);
  });

  test.each([
    ['missing', LOST],
    ['unknown', { value: null, fresh: false, ageMs: 0, count: 0, reason: 'not_started' }],
    ['stale', { ...LOST, reason: 'stale' }],
    ['thin', { ...LOST, reason: 'thin' }],
  ] as const)('a witness that is %s confirms nothing', (_name, dbWait) => {
    expect(decide(policy, { p95: seen(600), dbWait }).change).toBe(false);
  });

  test('a witness of a slow source counts between two readings, while it is not stale', () => {
    const dbWait = seen(3, { fresh: false, ageMs: 9000 });
    expect(decide(policy, { p95: seen(600), dbWait }).reason).toMatch(/cut/);
  });

  test('one of several is enough, above or below its level', () => {
    const either = withWitness(law, { dbWait: { above: 2 }, pool: { below: 1 } });
    expect(decide(either, { p95: seen(600), dbWait: LOST, pool: seen(0) }).reason).toMatch(/cut/);
    const none = decide(either, { p95: seen(600), dbWait: LOST, pool: seen(1) });
    expect(none.change).toBe(false);
    expect(none.why).toContain('waits for dbWait > 2 or pool < 1 as witness');
  });

  test('another objective past its own setpoint cuts meanwhile, and the breaker trips', () => {
    const other = decide(policy, { p95: seen(600), dbWait: seen(0), pool: seen(60) });
    expect(other.reason).toMatch(/cut/);
    expect(other.why).toContain('pool 60');
    const failing = { ok: 0, failed: 400, matching: 400, tick: { ok: 0, matching: 200 } };
    const trip = decide(policy, { p95: seen(600), dbWait: seen(0) }, { outcomes: failing });
    expect(trip.reason).toBe('breaker_trip');
  });

  test('well below the setpoint no witness is asked: it raises', () => {
    const decision = decide(policy, { p95: seen(60), dbWait: seen(0) });
    expect(decision.rate + decision.inFlightMax).toBeGreaterThan(124);
  });
});

test('with `sustain` both must hold: first the time, then the witness', () => {
  const objective = { p95: { below: '250ms', sustain: '3s', confirm: { dbWait: { above: 2 } } } };
  const policy = policyOf({ signals: SIGNALS, objective } as Partial<PolicyInput>);
  const waiting = (missedMs: number, waits: number) =>
    overloadOf(policy, sampleOf({ signals: { p95: seen(600, { missedMs }), dbWait: seen(waits) } }))
      .waiting?.for.what;
  expect(waiting(1000, 9)).toBe('sustain');
  expect(waiting(3000, 0)).toBe('witness');
  expect(waiting(3000, 9)).toBeUndefined();
});

describe('in a simulation', () => {
  /** The service's own work at a third of its speed, or its database's: response time rises with both. */
  const slow = (what: 'speed' | 'databaseSpeed'): Scenario => ({
    ...{ name: what, says: what, durationS: 60, phases: [0], disturbances: [] },
    at: (s) => ({ load: 0.7, [what]: s < 20 ? 1 : 0.33 }),
  });
  const cutsUnder = (policy: Policy, scenario: Scenario) => {
    const changes: Change[] = [];
    const service = defaultService(policy);
    const capacityPerSecond = carriedOf(service);
    const controller = byPolicy(policy, (change) => void changes.push(change));
    runScenario({ policy, scenario, service, capacityPerSecond, seed: 7 }, controller);
    return changes.filter(({ decision }) => /cut/.test(decision.reason)).length;
  };
  const checkout = (objective: PolicyInput['objective']) =>
    policyOf({ signals: SIGNALS, objective } as Partial<PolicyInput>);
  const alone = checkout({ p95: { below: '250ms' } });
  const witnessed = checkout({ p95: { below: '250ms', confirm: { dbWait: { above: 2 } } } });

  test('slow by itself: cut alone, not with a witness that sees nothing', () => {
    expect(cutsUnder(alone, slow('speed'))).toBeGreaterThan(0);
    expect(cutsUnder(witnessed, slow('speed'))).toBe(0);
  });

  test('slow by its database: the waits confirm it', () => {
    expect(cutsUnder(witnessed, slow('databaseSpeed'))).toBeGreaterThan(0);
  });
});

describe('faults', () => {
  const faults = (objective: unknown) => {
    const limiter = { name: 'checkout', rate: 100, capacity: 200 };
    const result = parsePolicy({ limiter, signals: SIGNALS, objective }, 'policies/x.ts');
    return (result.faults ?? []).map((fault) =>
      formatFault(fault).replace(/^.*?x\.ts:?\d*:? /, ''),
    );
  };
  const confirm = (level: unknown) => ({ p95: { below: '250ms', confirm: level } });

  test.each([
    [{}, 'objective.p95.confirm names no signal. Name one and its level, { dbWait: { above: 2 } }'],
    [
      { dbWat: { above: 2 } },
      'objective.p95.confirm.dbWat names no signal: there is no "dbWat" in signals. Use one of: p95, errors, dbWait, pool.',
    ],
    [{ p95: { above: '1s' } }, 'objective.p95.confirm.p95 is the signal itself. Name another one'],
    [
      { dbWait: {} },
      'objective.p95.confirm.dbWait gives neither of below, above. Give exactly one.',
    ],
    [
      { dbWait: { above: 2, below: 1 } },
      'objective.p95.confirm.dbWait gives both of below, above. Give exactly one.',
    ],
    [
      { dbWait: { above: '250ms' } },
      'objective.p95.confirm.dbWait.above is "250ms", but signal "dbWait" is a count',
    ],
    [
      { errors: { above: 7 } },
      'objective.p95.confirm.errors.above is 7, but signal "errors" is a ratio',
    ],
    [{ dbWait: { over: 2 } }, 'objective.p95.confirm.dbWait.over is not a field.'],
    [7, 'objective.p95.confirm is 7, not'],
  ])('%j', (level, said) => {
    expect(faults(confirm(level)).join('\n')).toContain(said);
  });

  test('failures cut no limit, so there is nothing to confirm', () => {
    const said = faults({ errors: { below: '1%', confirm: { dbWait: { above: 2 } } } });
    expect(said.join('\n')).toContain('objective.errors.confirm has nothing to confirm');
  });

  test('onMissing of an objective is one of three; other words are answered with ours', () => {
    expect(faults({ p95: { below: '250ms', onMissing: 'raise' } }).join('\n')).toContain(
      'objective.p95.onMissing is "raise", not one of "hold", "glide", "ignore".',
    );
    expect(faults({ p95: { below: '250ms', whenMissing: 'hold' } }).join('\n')).toContain(
      'objective.p95.whenMissing is not our word. Say onMissing.',
    );
  });

  test('what is sound passes', () => {
    expect(faults(confirm({ dbWait: { above: 2 }, errors: { above: '5%' } }))).toEqual([]);
  });
});
