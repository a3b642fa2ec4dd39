/** Tiers of a policy: how many good outcomes in a row give a subject which numbers. Stage: policy. */
import { z } from 'zod';
import { capacity, code, rate } from './fields.js';
import { number, time } from './units.js';

export const tiersSchema = z.strictObject({
  /** The outcome that counts, as the service names it: `limiter.outcome(subject, 'paid')`. */
  on: code,
  /** Outcomes that bring a subject back to the policy's numbers. Default ['failed']. */
  resetOn: z.array(code).min(1).max(16).optional(),
  /** How long a row without an outcome is remembered. Default '30d'. */
  keptFor: time({ min: 1_000, max: 365 * 86_400_000 }).optional(),
  /** By growing `times`; what a step leaves out stays the policy's. */
  steps: z
    .array(
      z.strictObject({
        /** This many in a row. */
        times: number('outcomes in a row', { min: 1, max: 1e6, whole: true }),
        capacity: capacity.optional(),
        rate: rate.optional(),
      }),
    )
    .min(1)
    .max(16),
});
