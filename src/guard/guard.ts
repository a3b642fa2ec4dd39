/** The guards in order; each may lower, hold or refuse a proposal, and says so. Stage: guard. */
import { capacityFor } from '../decide/bounds.js';
import { startingPoint } from '../decide/law.js';
import { sentence } from '../decide/reasons.js';
import { budgetSize } from '../decide/state.js';
import type {
  DecideState,
  Decision,
  GuardMemory,
  GuardVerdict,
  ProofMemory,
  Proposal,
  Sample,
} from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { atFloorTicks, sayAtFloor } from './at-floor.js';
import { autoRollback } from './auto-rollback.js';
import { bounds } from './bounds.js';
import { deadBand } from './dead-band.js';
import { drift, driftMemory } from './drift.js';
import { heldBack, heldBackText } from './held-back.js';
import { hold } from './hold.js';
import { budget, cooldown, fleet, slew } from './pace.js';
import { missingFor, staleness } from './staleness.js';
import type { Guard } from './types.js';

/** For the law. */
export const LAW_GUARDS: readonly Guard[] = [
  hold,
  staleness,
  slew,
  drift,
  autoRollback,
  cooldown,
  budget,
  fleet,
  deadBand,
  bounds,
];
/** For the breaker: it acts on fresh evidence by itself, and must not wait. */
export const BREAKER_GUARDS: readonly Guard[] = [hold, bounds];

/** Proposal → decision. Pure; the state given is not touched. */
export function guard(
  policy: Policy,
  state: DecideState,
  sample: Sample,
  proposal: Proposal,
  proof?: ProofMemory,
): { state: DecideState; decision: Decision } {
  const now = startingPoint(sample);
  const before = tickMemory(policy, state.memory.guard, sample);
  const verdicts: GuardVerdict[] = [];
  const seen = { policy, memory: before, proof, sample, now, proposal };
  for (const each of proposal.cause === 'breaker' ? BREAKER_GUARDS : LAW_GUARDS) {
    const result = each(seen);
    seen.proposal = result.proposal;
    if (result.verdict.effect !== 'passed') verdicts.push(result.verdict);
  }
  const current = seen.proposal;
  const { target } = sample.inForce;
  const moved = current.rate !== target.rate || current.inFlightMax !== target.inFlightMax;
  const change = moved || current.state !== sample.inForce.state || sample.inForce.gliding;
  const capacity =
    current.rate === target.rate ? target.capacity : capacityFor(policy, current.rate);
  const raised = current.rate > now.rate || current.inFlightMax > now.inFlightMax;
  const memory: GuardMemory = {
    ...before,
    sinceRaiseMs: change && raised ? 0 : before.sinceRaiseMs,
    budget: change ? Math.max(0, before.budget - 1) : before.budget,
    atFloorTicks: atFloorTicks(policy, before, sample, current),
    leftRate: current.rate,
    leftCap: current.inFlightMax,
    leftAuto: +(sample.inForce.mode === 'auto'),
  };
  const decided: Decision = { ...current, capacity, change, verdicts };
  const decision = sayAtFloor(decided, memory.atFloorTicks);
  const held = verdicts.length === 0 ? null : heldBack(proposal, decision);
  if (held !== null) decision.heldBack = held;
  const said = held === null ? '' : heldBackText(held, decision);
  decision.sentence = sentence(decision.why, sample.inForce, decision, said);
  return { state: { ...state, memory: { ...state.memory, guard: memory } }, decision };
}

function tickMemory(policy: Policy, memory: GuardMemory, sample: Sample): GuardMemory {
  const dtMs = Math.max(0, sample.dtMs);
  const size = budgetSize(policy);
  return {
    sinceRaiseMs: Math.min(3_600_000, memory.sinceRaiseMs + dtMs),
    budget: Math.min(size, memory.budget + (size * dtMs) / 60_000),
    missingMs: missingFor(policy, memory, sample),
    // An entry written before this was counted can still be explained.
    atFloorTicks: memory.atFloorTicks ?? 0,
    ...driftMemory(policy, memory, sample),
  };
}
