/** The state that `step` and the guards carry from tick to tick: fresh, or revived from a checkpoint. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { loopIn } from '../tune/loop.js';
import type { BreakerMemory } from './breaker-types.js';
import type { DecideState, GuardMemory, LawMemory, ProofMemory } from './types.js';

export function createDecideState(policy: Policy): DecideState {
  return {
    law: policy.control.law,
    memory: { breaker: freshBreaker(), law: {}, guard: freshGuard(policy) },
  };
}

export function freshBreaker(): BreakerMemory {
  return {
    state: 'closed',
    inStateMs: 0,
    level: 0,
    probesOk: 0,
    probesFailed: 0,
    probingMs: -1,
    resume: null,
  };
}

export function freshGuard(policy: Policy): GuardMemory {
  // A new daemon may raise at once: what held before is not known to be its doing.
  return { sinceRaiseMs: 3_600_000, budget: budgetSize(policy), missingMs: 0, atFloorTicks: 0 };
}

/** Half at once and half over the minute: no minute sees more than `changesPerMinute`. */
export function budgetSize(policy: Policy): number {
  return Math.max(1, policy.guards.changesPerMinute / 2);
}

/**
 * A checkpoint as another daemon, perhaps of another version, left it → a state, or a fresh one when it holds anything
 * that is not a finite number where one is due. Under another law than the policy's: `carriedOver` says what stays.
 */
export function reviveDecideState(policy: Policy, checkpoint: unknown): DecideState {
  const fresh = createDecideState(policy);
  if (!isRecord(checkpoint) || !isRecord(checkpoint.memory)) return fresh;
  const { memory } = checkpoint;
  // What proved good is no law's: it stays when the policy names another.
  const proof = isProof(memory.proof) ? memory.proof : null;
  if (proof) fresh.memory.proof = { ...proof };
  if (typeof checkpoint.law !== 'string' || !isRecord(memory.law)) return fresh;
  if (!isRecord(memory.breaker) || !isRecord(memory.guard)) return fresh;
  const { state, resume, stored = null, ...breakerNumbers } = memory.breaker;
  const known = state === 'closed' || state === 'open' || state === 'half-open';
  if (!known && state !== 'recovering') return fresh;
  for (const numbers of [resume, stored]) {
    if (numbers !== null && !(isRecord(numbers) && allFinite(numbers))) return fresh;
  }
  if (![breakerNumbers, memory.guard, memory.law].every(allFinite)) return fresh;
  const loop = loopIn(memory.loop);
  const reserve = isRecord(memory.reserve) && allFinite(memory.reserve) ? memory.reserve : null;
  return {
    law: checkpoint.law,
    memory: {
      breaker: { ...fresh.memory.breaker, ...memory.breaker } as BreakerMemory,
      law: { ...memory.law } as LawMemory,
      guard: { ...fresh.memory.guard, ...memory.guard } as GuardMemory,
      ...(reserve && { reserve: { pressedMs: 0, relaxedMs: 0, ...reserve } }),
      ...(loop && { loop }),
      ...(proof && { proof: { ...proof } }),
    },
  };
}

const PROOF_FIELDS = [
  ...['rate', 'cap', 'good', 'answers', 'reporting', 'atRate', 'atCap', 'ok', 'asked', 'count'],
  ...['ms', 'bad', 'worse', 'lastRate', 'lastCap', 'sinceRiseMs', 'adoptedMs', 'settleMs'],
  ...['topRate', 'topCap', 'coolMs', 'level', 'calmMs'],
] as readonly (keyof ProofMemory)[];

function isProof(value: unknown): value is ProofMemory {
  return isRecord(value) && allFinite(value) && PROOF_FIELDS.every((field) => field in value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function allFinite(record: Record<string, unknown>): boolean {
  return Object.values(record).every((value) =>
    Array.isArray(value) ? value.every(Number.isFinite) : Number.isFinite(value),
  );
}
