/** Every term that a decision records has a meaning in `flyball explain`: of each law, of the breaker and of the loop. */
import { expect, test } from 'vitest';
import { termMeaning } from '../../src/cli/terms.js';
import { createDecideState, type Policy, turn } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const BOUNDS = { rate: { min: 10, max: 400 }, inFlight: { min: 3, max: 64 } };
const plain = {
  limiter: { name: 'gateway', rate: 100, capacity: 50, completions: 'none' as const },
  bounds: { rate: BOUNDS.rate },
};
const shed = { on: 'errors', above: '50%', openFor: '5s', shed: 'proportional' } as const;

const POLICIES: [string, Policy][] = [
  ['adaptive', policyOf({ bounds: BOUNDS })],
  ['adaptive, the rate alone', policyOf(plain)],
  ['aimd', policyOf({ bounds: BOUNDS, control: { law: 'aimd', add: 1, addInFlight: 1 } })],
  ['pi', policyOf({ bounds: BOUNDS, control: { law: 'pi', kp: 0, ki: 0.004 } })],
  ['adaptive, shedding', policyOf({ bounds: BOUNDS, breaker: shed })],
  ['step', policyOf({ bounds: BOUNDS, control: { law: 'step', slowAboveMs: 250 } })],
];

const slow = { p95: { value: 900, fresh: true, ageMs: 300, count: 400 } };
const failing = { errors: { value: 0.6, fresh: true, ageMs: 300, count: 400 } };
const SAMPLES: SampleParts[] = [
  { signals: failing },
  { signals: slow, traffic: { deniedByCap: 5 } },
  { signals: slow, inForce: { state: 'open' } },
  { signals: slow, inForce: { state: 'half-open' } },
  { signals: slow, inForce: { state: 'recovering' } },
];

test.each(POLICIES)('%s', (_, policy) => {
  const names = SAMPLES.flatMap((parts) => {
    const { decision } = turn(policy, createDecideState(policy), sampleOf(parts));
    return Object.keys(decision.terms);
  });
  expect(names).toContain('atFloorTicks');
  expect([...new Set(names)].filter((name) => termMeaning(name) === '')).toEqual([]);
});
