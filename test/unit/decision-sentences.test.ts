/** A decision's sentence: what was seen with its numbers, for how long, what it changes, and what a guard held back. */
import { describe, expect, test } from 'vitest';
import type { Decision } from '../../src/decide/types.js';
import { contest, defaultPlant } from '../../src/sim/compare.js';
import { SCENARIOS } from '../../src/sim/scenarios.js';
import { createDecideState, type Policy, turn } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const p95 = (value: number, more: object = {}) => ({
  p95: { value, fresh: true, ageMs: 300, count: 400, ...more },
});

function decide(parts: SampleParts, policy = policyOf()): Decision {
  return turn(policy, createDecideState(policy), sampleOf(parts)).decision;
}

describe('a cut', () => {
  const slow: SampleParts = {
    signals: p95(612, { missedMs: 2000 }),
    traffic: { inFlight: 41, inFlightNow: 41, deniedByCap: 5, okRate: 83 },
    inForce: { target: { rate: 210, capacity: 50, inFlightMax: 44 } },
  };

  test('signal, ratio to the setpoint, for how long, in flight, cap and rate from and to', () => {
    const policy = policyOf({ objective: { p95: { below: '500ms' } } });
    const { sentence, inFlightMax, reason } = decide(slow, policy);
    expect(reason).toBe('law_cut');
    expect(sentence).toBe(
      `p95 612 ms is 1.22 × the 500 ms setpoint for 2 s; 83 good answers/s; observed in flight 41; cap 44 → ${inFlightMax}; rate ceiling 210 → 166/s.`,
    );
  });

  test('a signal that has just passed its setpoint says no time', () => {
    expect(decide({ ...slow, signals: p95(612) }).sentence).toContain('the 250 ms setpoint; 83');
  });
});

describe('what a guard held back', () => {
  const room: SampleParts = {
    signals: p95(60),
    traffic: { deniedByRate: 40, okRate: 200, answers: 200, inFlight: 6 },
    inForce: { target: { rate: 100, capacity: 50, inFlightMax: 24 } },
  };

  test('in part: how far it would have gone, which guard, and why', () => {
    const { sentence, rate } = decide(room);
    expect(rate).toBe(200);
    expect(sentence).toMatch(
      /; rate ceiling 100 → 200\/s; would be rate 400\/s: guard slew held the rest \(a raise is at most × 2\)\.$/,
    );
  });

  test('altogether: then nothing changes, and it is said all the same', () => {
    const policy = policyOf();
    const state = createDecideState(policy);
    state.memory.guard.sinceRaiseMs = 0;
    const { decision } = turn(policy, state, sampleOf(room));
    expect(decision.change).toBe(false);
    expect(decision.sentence).toMatch(
      /; would be rate 400\/s: guard slew, cooldown held it \(a raise is at most × 2; last raise 1000 ms ago, cool-down 2000 ms\)\.$/,
    );
  });

  test('a person’s hold: what was not applied', () => {
    const pinned = { ...room, inForce: { ...room.inForce, held: 'pinned' as const } };
    expect(decide(pinned).sentence).toContain('guard hold held it (pinned by a person: law_raise');
  });

  test('nothing was held back: no guard is named', () => {
    expect(decide({ signals: p95(180) }).sentence).not.toContain('guard');
  });
});

/** What each reason must tell: numbers with their units, not only words. */
const TELLS: Record<string, RegExp> = {
  law_cut: /is [\d.]+ × the \d+ ms setpoint.*good answers\/s.*→/,
  law_emergency_cut: /is [\d.]+ × the \d+ ms setpoint.*→/,
  law_raise: /is [\d.]+ × the \d+ ms setpoint.*→/,
  step_healthy: /error rate below 0.1 % for 60 s; rate ceiling [\d.]+ → [\d.]+\/s/,
  breaker_trip: /\d+.*of \d+ answers.*open for \d+ s; closed → open/,
  breaker_probe_failed: /\d+ of \d+ probes failed.*open for \d+ s; half-open → open/,
  breaker_recovering: /\d+ probes passed; half-open → recovering/,
  breaker_ramp: /slow start at [\d.]+ %.*→/,
  breaker_closed: /slow start has arrived; recovering → closed/,
};

describe('every kind of decision of a run in the simulator', () => {
  const plain = {
    limiter: { name: 'plain', rate: 100, capacity: 50, completions: 'none' as const },
    bounds: { rate: { min: 20, max: 400 } },
  };
  const step = { law: 'step' as const, slowAboveMs: 100, healthyFor: '60s' as const };
  const policies: [string, Policy][] = [
    ['adaptive', policyOf()],
    ['adaptive, the rate alone', policyOf(plain)],
    ['step', policyOf({ control: step })],
  ];

  test('each reason that came up tells its numbers', () => {
    const told = new Set<string>();
    for (const [name, policy] of policies) {
      for (const scenario of SCENARIOS.filter(({ name }) => /outage|surge/.test(name))) {
        const { changes } = contest(policy, defaultPlant(policy), scenario, 1).run('policy');
        for (const { decision } of changes) {
          const { reason, sentence } = decision;
          told.add(reason);
          expect(TELLS[reason], `${name}: ${reason}: ${sentence}`).toBeDefined();
          expect(sentence, `${name}: ${reason}`).toMatch(TELLS[reason]!);
          expect(sentence).not.toMatch(/NaN|undefined|unknown|; ;|\.\.$/);
        }
      }
    }
    expect([...told].sort()).toEqual(Object.keys(TELLS).sort());
  });
});
