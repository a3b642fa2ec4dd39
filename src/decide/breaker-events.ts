/** Which breaker event a sample raises, and what the breaker remembers of it. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { LimiterState } from '../redis/params.js';
import type { BreakerEvent } from './breaker.js';
import { freshBreaker } from './state.js';
import type { BreakerMemory, LimiterNumbers, Sample } from './types.js';

/** Used when a person tripped a limiter whose policy has no breaker. */
const DEFAULTS = { successes: 3, probeDeadline: 30_000, openFor: 5_000, openForMax: 60_000 };

/** Time in state, probes, decay of the trips in a row. The state itself is what is in force. */
export function observe(policy: Policy, before: BreakerMemory, sample: Sample): BreakerMemory {
  const { inForce, outcomes, traffic } = sample;
  const dtMs = Math.max(0, sample.dtMs);
  const entered = before.state !== inForce.state;
  const memory: BreakerMemory = entered
    ? { ...before, state: inForce.state, inStateMs: 0, probesOk: 0, probesFailed: 0, probingMs: -1 }
    : { ...before, inStateMs: before.inStateMs + dtMs };

  if (inForce.state === 'closed') {
    if (entered && before.state !== 'closed') memory.resume = null;
    const decayMs = policy.breaker?.openForMax ?? DEFAULTS.openForMax;
    memory.level = Math.max(0, memory.level - dtMs / decayMs);
  }
  if (isStopped(inForce.state)) {
    const target = { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };
    // The way back leads to what is stored, or, after a trip out of a slow start, to where that led; what a
    // person stores while it is open replaces both.
    const changed = isStopped(before.state) && before.stored && !same(before.stored, target);
    if (memory.resume === null || changed) memory.resume = target;
    memory.stored = target;
  }
  if (inForce.state === 'half-open') {
    const current = outcomes.generation === inForce.generation;
    if (outcomes.fresh && current) {
      memory.probesOk += outcomes.tick.ok;
      memory.probesFailed += outcomes.tick.matching;
    }
    // The deadline runs from the first probe and only while telemetry comes in: silence of the sensor
    // or of the callers is no verdict.
    if (traffic.fresh) {
      if (memory.probingMs >= 0) memory.probingMs += dtMs;
      else if (!entered && traffic.admittedRate > 0) memory.probingMs = 0;
    }
  }
  return memory;
}

function isStopped(state: LimiterState): boolean {
  return state === 'open' || state === 'half-open';
}

function same(a: LimiterNumbers, b: LimiterNumbers): boolean {
  return a.rate === b.rate && a.inFlightMax === b.inFlightMax;
}

/** The event of this tick. Only fresh outcomes of the generation in force can trip. */
export function breakerEvent(policy: Policy, memory: BreakerMemory, sample: Sample): BreakerEvent {
  const { inForce } = sample;
  switch (inForce.state) {
    case 'open':
      return 'none'; // `effective()` turns it half-open by time.
    case 'half-open':
      return probeVerdict(policy, memory);
    default:
      return tripped(policy, sample) ? 'trip' : 'none';
  }
}

function probeVerdict(policy: Policy, memory: BreakerMemory): BreakerEvent {
  const { successes, probeDeadline } = policy.breaker ?? DEFAULTS;
  const { probesOk, probesFailed, probingMs } = memory;
  // A failure opens unless it is the odd one among successes: then another probe decides.
  if (probesFailed > 0 && probesFailed >= probesOk) return 'probe_failed';
  if (probesOk >= successes) return 'probes_passed';
  return probingMs >= probeDeadline ? 'probe_deadline' : 'none';
}

export function tripped(policy: Policy, sample: Sample): boolean {
  const { breaker } = policy;
  const { outcomes, inForce } = sample;
  if (breaker === undefined || !outcomes.fresh) return false;
  if (outcomes.generation !== inForce.generation) return false;
  if (outcomes.tick.matching === 0) return false;
  if (policy.signals[breaker.on]?.stat === 'errors') return outcomes.matching > breaker.above;
  const answers = outcomes.ok + outcomes.failed;
  return answers >= breaker.minAnswers && outcomes.failed / answers > breaker.above;
}

/** Doubles with each trip in a row, up to the most. */
export function openForMs(policy: Policy, memory: BreakerMemory): number {
  const { openFor, openForMax } = policy.breaker ?? DEFAULTS;
  return Math.min(openForMax, openFor * 2 ** Math.min(20, Math.ceil(memory.level - 1e-9)));
}

/** Memory once a trip (or a failed probe) has been decided. */
export function afterTrip(memory: BreakerMemory, sample: Sample): BreakerMemory {
  const { target, state } = sample.inForce;
  const known = memory.resume !== null && state !== 'closed';
  const resume = known ? memory.resume : { rate: target.rate, inFlightMax: target.inFlightMax };
  return { ...freshBreaker(), state, inStateMs: memory.inStateMs, level: memory.level + 1, resume };
}
