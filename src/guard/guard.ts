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
  const { memory, decision } = guarded(policy, state.memory.guard, sample, proposal, proof);
  return { state: { ...state, memory: { ...state.memory, guard: memory } }, decision };
}

/** The same, of the guards' own memory. */
export function guarded(
  policy: Policy,
  before: GuardMemory,
  sample: Sample,
  proposal: Proposal,
  proof?: ProofMemory,
): { memory: GuardMemory; decision: Decision } {
  const now = startingPoint(sample);
  const memory = tickMemory(policy, before, sample);
  const verdicts: GuardVerdict[] = [];
  const seen = { policy, memory, proof, sample, now, proposal };
  for (const each of proposal.cause === 'breaker' ? BREAKER_GUARDS : LAW_GUARDS) {
    const result = each(seen);
    if (result === null) continue;
    seen.proposal = result.proposal;
    if (result.verdict !== undefined) verdicts.push(result.verdict);
  }
  const current = seen.proposal;
  const { target } = sample.inForce;
  const moved = current.rate !== target.rate || current.inFlightMax !== target.inFlightMax;
  const change = moved || current.state !== sample.inForce.state || sample.inForce.gliding;
  const capacity =
    current.rate === target.rate ? target.capacity : capacityFor(policy, current.rate);
  const raised = current.rate > now.rate || current.inFlightMax > now.inFlightMax;
  if (change && raised) memory.sinceRaiseMs = 0;
  if (change) memory.budget = Math.max(0, memory.budget - 1);
  memory.atFloorTicks = atFloorTicks(policy, memory, sample, current);
  memory.leftRate = current.rate;
  memory.leftCap = current.inFlightMax;
  memory.leftAuto = +(sample.inForce.mode === 'auto');
  const { openForMs } = current;
  // Spelled out: a tick of thousands of limiters feels what a spread costs.
  const decision: Decision = {
    state: current.state,
    rate: current.rate,
    capacity,
    inFlightMax: current.inFlightMax,
    cause: current.cause,
    reason: current.reason,
    why: current.why,
    sentence: '',
    over: current.over,
    terms: current.terms,
    change,
    verdicts,
  };
  if (openForMs !== undefined) decision.openForMs = openForMs;
  sayAtFloor(decision, memory.atFloorTicks);
  const held = verdicts.length === 0 ? null : heldBack(proposal, decision);
  if (held !== null) decision.heldBack = held;
  const said = held === null ? '' : heldBackText(held, decision);
  decision.sentence = sentence(decision.why, sample.inForce, decision, said);
  return { memory, decision };
}

function tickMemory(policy: Policy, memory: GuardMemory, sample: Sample): GuardMemory {
  const dtMs = Math.max(0, sample.dtMs);
  const size = budgetSize(policy);
  const next: GuardMemory = {
    sinceRaiseMs: Math.min(3_600_000, memory.sinceRaiseMs + dtMs),
    budget: Math.min(size, memory.budget + (size * dtMs) / 60_000),
    missingMs: missingFor(policy, memory, sample),
    // An entry written before this was counted can still be explained.
    atFloorTicks: memory.atFloorTicks ?? 0,
    leftRate: 0,
    leftCap: 0,
    leftAuto: 0,
  };
  const drifted = driftMemory(policy, memory, sample);
  return drifted === null ? next : { ...next, ...drifted };
}
