/** One turn of the loop after estimate: decide, then guard. Daemon, simulator and `explain` call this one function. Stage: guard. */
import { moveReserves } from '../decide/reserve.js';
import { step } from '../decide/step.js';
import type { DecideState, Decision, Sample } from '../decide/types.js';
import { bounded } from '../policy/person-bounds.js';
import { profiled } from '../policy/profile.js';
import type { Policy } from '../policy/schema.js';
import { observeProof, settleProof } from './auto-rollback.js';
import { withinCeiling } from './ceiling.js';
import { sayShare, withinShare } from './group-share.js';
import { guarded } from './guard.js';

/** Pure and deterministic: the same policy, state and sample give the same decision (I13). */
export function turn(
  policy: Policy,
  state: DecideState,
  sample: Sample,
): { state: DecideState; decision: Decision } {
  const windowed = bounded(profiled(policy, sample.profile), sample.bounds);
  const within = withinCeiling(withinShare(windowed, sample), sample);
  const stepped = step(within, state, sample);
  const proof = observeProof(within, state.memory.proof, sample);
  // `step` has made it anew.
  const { memory } = stepped.state;
  const judged = guarded(within, memory.guard, sample, stepped.proposal, proof);
  memory.guard = judged.memory;
  if (proof !== undefined) {
    settleProof(proof, judged.decision);
    memory.proof = proof;
  }
  const decision = sayShare(within, sample, judged.decision);
  return moveReserves(policy, state, sample, { state: stepped.state, decision });
}
