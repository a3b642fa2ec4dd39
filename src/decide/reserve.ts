/** Moves the reserves that shed low priorities first, while more is asked for than the limits allow. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { overloadOf } from './overload.js';
import { num, sentence } from './reasons.js';
import type { DecideState, Decision, ReserveMemory, Reserves, Sample } from './types.js';

/**
 *   pressed   the rate denies, or nearly and a signal is past its setpoint, for 5 s   a quarter of the way up
 *   relaxed   all that is asked for is at most 0.85 of the rate, for 10 s             a quarter of the way down
 *   else      nothing moves; time that is broken off begins anew
 *
 * The way is from the policy's own reserves to `bounds.reserve`: sheddable first, then default, which never lies above
 * it. Once what is shed makes room, the rate denies nobody of higher priority, and the reserve stays where it is.
 */
const TUNING = { pressedMs: 5_000, relaxedMs: 10_000, roomy: 0.85, step: 0.25 };

const EVEN: ReserveMemory = { pressedMs: 0, relaxedMs: 0 };

/** The decision with its reserves; untouched for a policy without `bounds.reserve`. */
export function moveReserves(
  policy: Policy,
  before: DecideState,
  sample: Sample,
  next: { state: DecideState; decision: Decision },
): { state: DecideState; decision: Decision } {
  const now = sample.inForce.target.reserve;
  if (policy.bounds?.reserve === undefined || now === undefined) return next;
  const memory = timed(policy, before.memory.reserve ?? EVEN, sample);
  const moves = sample.inForce.held === 'none' && next.decision.state === 'closed';
  const up = moves && memory.pressedMs >= TUNING.pressedMs;
  const down = moves && !up && memory.relaxedMs >= TUNING.relaxedMs;
  const reserve = up || down ? moved(policy, now, up ? 1 : -1) : now;
  const state = (kept: ReserveMemory) => ({
    ...next.state,
    memory: { ...next.state.memory, reserve: kept },
  });
  if (reserve.default === now.default && reserve.sheddable === now.sheddable) {
    return { state: state(memory), decision: { ...next.decision, reserve: now } };
  }
  return { state: state(EVEN), decision: said(next.decision, sample, now, reserve, up) };
}

function timed(policy: Policy, memory: ReserveMemory, sample: Sample): ReserveMemory {
  const { traffic, inForce, dtMs } = sample;
  if (!traffic.fresh) return traffic.ageMs > TUNING.pressedMs ? EVEN : memory;
  const overload = overloadOf(policy, sample);
  const binds = traffic.admittedRate > 0.9 * inForce.target.rate;
  const over = binds && overload.fresh && overload.z > 0;
  const pressed = traffic.deniedByRate > 0 || over;
  const relaxed = !pressed && traffic.offeredRate <= TUNING.roomy * inForce.target.rate;
  // A reading stands for its whole interval, and the ticks between two readings for nothing.
  const spanMs = Math.max(dtMs, Math.min(5_000, traffic.intervalMs));
  return {
    pressedMs: pressed ? memory.pressedMs + spanMs : 0,
    relaxedMs: relaxed ? memory.relaxedMs + spanMs : 0,
  };
}

/** One step: up sheddable first, down default first. */
function moved(policy: Policy, now: Reserves, direction: 1 | -1): Reserves {
  const least = policy.limiter.reserve;
  const most = mostOf(policy);
  const step = (name: keyof Reserves) => {
    const size = TUNING.step * (most[name] - least[name]);
    const to = Math.min(most[name], Math.max(least[name], now[name] + direction * size));
    return Math.round(to * 1e4) / 1e4;
  };
  const first = direction === 1 ? 'sheddable' : 'default';
  const end = direction === 1 ? most : least;
  const name = now[first] === end[first] ? (first === 'default' ? 'sheddable' : 'default') : first;
  const to = { ...now, [name]: step(name) };
  return { default: Math.min(to.default, to.sheddable), sheddable: to.sheddable };
}

function mostOf(policy: Policy): Reserves {
  const { reserve } = policy.limiter;
  const sheddable = Math.max(reserve.sheddable, policy.bounds?.reserve?.sheddable ?? 0);
  const usual = Math.max(reserve.default, policy.bounds?.reserve?.default ?? 0);
  return { default: Math.min(usual, sheddable), sheddable };
}

function said(
  decision: Decision,
  sample: Sample,
  from: Reserves,
  reserve: Reserves,
  up: boolean,
): Decision {
  const name = from.sheddable === reserve.sheddable ? 'default' : 'sheddable';
  const { offeredRate, admittedRate } = sample.traffic;
  const asked = `${num(offeredRate)}/s asked for, ${num(admittedRate)}/s admitted`;
  const change = `reserve for above ${name} ${num(from[name] * 100)} → ${num(reserve[name] * 100)} %`;
  const shed = up ? 'shed first' : 'let in again';
  const why = decision.change
    ? `${decision.why}; ${change}`
    : `${asked}: ${name} requests are ${shed}; ${change}`;
  const moved: Decision = { ...decision, change: true, reserve, why };
  if (!decision.change) moved.reason = up ? 'reserve_raise' : 'reserve_lower';
  moved.sentence = sentence(why, sample.inForce, moved);
  return moved;
}
