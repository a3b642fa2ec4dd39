/** What tests of `flyball backtest` replay: a policy file with a law and a breaker, and a policy with neither. */
import { join } from 'node:path';
import { policySchema } from '../../src/policy/schema.js';
import { type DaemonSetup, policyText } from './daemon.js';

/** Of one signal, no law. */
export const PLAIN = policySchema.parse({
  limiter: { name: 'checkout', rate: 100, capacity: 50 },
  signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
});

/** Writes the file; returns its path. */
export function backtestPolicy(setup: DaemonSetup): string {
  setup.write(
    'checkout.ts',
    policyText(`
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    declined: { source: 'telemetry', stat: 'errors', code: 'DECLINED' },
  },
  objective: { p95: { below: '200ms' } },
  control: { law: 'adaptive' },
  breaker: { on: 'declined', above: 20, openFor: '3s' },`),
  );
  return join(setup.policies, 'checkout.ts');
}
