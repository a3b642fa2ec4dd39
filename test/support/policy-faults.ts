/** How to ask a policy for its faults, and the parts that such policies are made of. */
import { expect } from 'vitest';
import { parsePolicy } from '../../src/policy/parse.js';

export const LIMITER = { name: 'checkout', rate: 100, capacity: 200 };
export const P95 = { source: 'telemetry', stat: 'latency', of: 0.95 };
export const ERRORS = { source: 'telemetry', stat: 'errorRatio' };
export const UPSTREAM = { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' };

/** `field message` of each fault. */
export function faultsOf(input: unknown): string[] {
  const result = parsePolicy(input, 'policies/x.ts');
  return (result.faults ?? []).map((fault) => `${fault.field} ${fault.message}`);
}

/** The one fault of a limiter with these fields; anything but one fails the test. */
export function only(input: unknown): string {
  const faults = faultsOf(input);
  expect(faults).toHaveLength(1);
  return faults[0]!;
}
