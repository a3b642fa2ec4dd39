/** What a law may go on from: nothing of another law, and nothing that was pending when others moved or held the limits. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { DecideState, LawMemory, Sample } from './types.js';

type Memory = DecideState['memory'];

/** Of a law's memory: what it was about to do with the limits, and since when its rules have held under them. */
const PENDING: ReadonlySet<string> = new Set([
  ...['cap', 'ofCap', 'rate', 'ofRate', 'good', 't', 'draining', 'hurried'],
  ...['slowMs', 'waitsMs', 'healthyMs', 'minuteMs', 'minuteAnswers', 'minuteFailed'],
]);

/** And what was reckoned from its setpoints: of others it would be something else. */
const PENDING_AND_RECKONED: ReadonlySet<string> = new Set([
  ...PENDING,
  ...['error', 'refCap', 'refZ', 'refX', 'futile', 'reliefMs'],
]);

/** Stored limits come back as they were written; less than this is no move (share). */
const SAME = 1e-6;

/**
 * The memory that this tick goes on from, so that whatever has happened since the last one, a law takes a step from
 * what is in force and no other (bumpless):
 *
 *   another law              begins anew; breaker, guards and reserves are no law's, and stay
 *   another policy           nothing pending, nothing reckoned from its setpoints
 *   gliding, or moved        nothing pending: by a person, a window, another daemon, a server that lost a write
 *   from would-be to auto    nothing pending, nor the other way
 *
 * What was learnt of the service (throughput, response time at leisure, how it answers) stays in all but the first.
 */
export function carriedOver(policy: Policy, { law, memory }: DecideState, sample: Sample): Memory {
  if (law !== policy.control.law) {
    const { loop: _, ...kept } = memory;
    return { ...kept, law: {} };
  }
  if (sample.adopted === true) {
    const { loop, ...kept } = memory;
    const anew = without(memory.law, PENDING_AND_RECKONED);
    // A signal as a share of another setpoint is no answer to a limit.
    return { ...kept, law: anew, ...(loop && { loop: { ...loop, means: [] } }) };
  }
  const voids = sample.inForce.gliding || movedByOthers(memory, sample);
  return voids ? { ...memory, law: withoutPending(memory.law) } : memory;
}

/** For limits that the breaker moves or a person holds: the law begins from them. */
export function withoutPending(law: LawMemory): LawMemory {
  return without(law, PENDING);
}

/** Is in force what the last decision left? A memory of an older version does not say. */
function movedByOthers({ guard }: Memory, { inForce: { target, mode } }: Sample): boolean {
  const moved = differs(target.rate, guard.leftRate) || differs(target.inFlightMax, guard.leftCap);
  return moved || differs(+(mode === 'auto'), guard.leftAuto);
}

function differs(now: number, left: number | undefined): boolean {
  return left !== undefined && Math.abs(now - left) > SAME * Math.abs(left);
}

function without(law: LawMemory, keys: ReadonlySet<string>): LawMemory {
  return Object.fromEntries(Object.entries(law).filter(([key]) => !keys.has(key)));
}
