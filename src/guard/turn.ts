/** One turn of the loop after estimate: decide, then guard. Daemon, simulator and `explain` call this one function. Stage: guard. */
import { step } from '../decide/step.js';
import type { DecideState, Decision, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { guard } from './guard.js';

/** Pure and deterministic: the same policy, state and sample give the same decision (I13). */
export function turn(
  policy: Policy,
  state: DecideState,
  sample: Sample,
): { state: DecideState; decision: Decision } {
  const stepped = step(policy, state, sample);
  return guard(policy, stepped.state, sample, stepped.proposal);
}
