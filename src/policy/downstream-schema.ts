/** What a policy says of the downstream that its limiter shares with others. Stage: policy. */
import { z } from 'zod';
import { name, rate } from './fields.js';
import { number, ratio } from './units.js';

export const downstreamSchema = z.strictObject({
  /** The same in every policy that shares it: 'orders-db'. */
  name,
  /** What it can take, over all limiters in front of it: tokens per second. */
  capacity: rate,
  /** Share of it that stays free. Default 0.2. */
  headroom: ratio.optional(),
  /** What this limiter's need counts for beside the others'. Default 1. */
  weight: number('a weight', { above: 0, max: 1000 }).optional(),
});
