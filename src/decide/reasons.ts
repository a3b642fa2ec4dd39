/** Every reason code of a decision, and the sentences with their numbers. Stage: decide, guard. */
import { signalKind } from '../policy/kinds.js';
import type { Policy } from '../policy/schema.js';
import type { Overload } from './overload.js';
import type { Over } from './told-types.js';
import type { InForceView, Proposal, Sample } from './types.js';

/** Why a decision was taken (or why nothing was). Stored in audit entries; `docs/control.md` lists them. */
export const REASONS = {
  steady: 'nothing to change',
  no_evidence: 'no fresh evidence: hold',
  signal_missing: 'a signal of the objective is missing: hold',
  clock_skew: 'clocks are minutes apart: nothing is decided until they agree',
  idle: 'the limits do not bind: no evidence to raise on',
  law_cut: 'overload: cut to a share of what is measured',
  law_emergency_cut: 'heavy overload: cut deep enough to drain',
  law_raise: 'the limits bind and the service has room',
  unverified: 'the rate is only an upper bound: stand at a multiple of what was seen to work',
  law_settle: 'take over what held while no autopilot wrote',
  auto_rollback: 'goodput fell after the limits rose: back to the last that proved good',
  downstream_share: 'above its share of what the limiters of one downstream may have together',
  reserve_raise: 'more is asked for than the limits allow: low priorities are shed first',
  reserve_lower: 'room for all: low priorities are let in again',
  at_floor: 'at the least that the bounds allow, and still above the setpoint',
  step_slow: 'average response time too high for too long',
  step_db_waits: 'too many database waits for too long',
  step_healthy: 'error rate low for long enough',
  glide_missing: 'signals missing for too long: toward the safe values',
  fixed: 'the law is fixed: the policy’s numbers',
  breaker_trip: 'a level was passed',
  breaker_upstream: 'another limiter of the same upstream opened',
  breaker_shed: 'failures above the level: a part is shed, in proportion',
  breaker_probe_failed: 'a probe failed',
  breaker_probe_deadline: 'probes were not answered in time',
  breaker_recovering: 'probes passed: slow start',
  breaker_ramp: 'slow start goes on',
  breaker_closed: 'slow start has arrived',
  breaker_open: 'open: waiting for the open time to pass',
  breaker_probing: 'half-open: waiting for probes',
} as const;

export type Reason = keyof typeof REASONS;

/** Three significant digits; whole numbers from 100 on. */
export function num(value: number): string {
  if (!Number.isFinite(value)) return 'unknown';
  const size = Math.abs(value);
  if (size >= 100) return String(Math.round(value));
  // As `toPrecision(3)` would, at a fraction of its time: a tick says many numbers.
  if (size >= 10) return String(Math.round(value * 10) / 10);
  if (size >= 1) return String(Math.round(value * 100) / 100);
  return String(size >= 0.1 ? Math.round(value * 1000) / 1000 : Number(value.toPrecision(3)));
}

/** A signal's value with its unit. */
export function withUnit(policy: Policy, name: string, value: number): string {
  const signal = policy.signals[name];
  const kind = signal === undefined ? 'count' : signalKind(signal);
  if (kind === 'duration') return `${num(value)} ms`;
  if (kind === 'ratio') return `${num(value * 100)} %`;
  return kind === 'perSecond' ? `${num(value)}/s` : num(value);
}

/** `p99 612 ms is 1.22 × the 500 ms setpoint for 2 s`. */
export function overloadText(policy: Policy, overload: Overload): string {
  if (overload.waiting !== undefined && !overload.fresh)
    return waitingText(policy, overload.waiting);
  if (!overload.fresh) return 'no fresh signal';
  const { worst, value, setpoint } = overload;
  const [is, aim] = [withUnit(policy, worst, value), withUnit(policy, worst, setpoint)];
  return beyondText(overload, is, aim, num(value / setpoint));
}

function beyondText({ worst, missedMs }: Overload, is: string, aim: string, ratio: string): string {
  const seconds = missedMs > 0 ? ` for ${num(missedMs / 1000)} s` : '';
  return `${worst} ${is} is ${ratio} × the ${aim} setpoint${seconds}`;
}

/** What a law saw: the worst reading beside its setpoint, with what lies beside it; in words, and as a reading. */
export function seenOf(
  policy: Policy,
  overload: Overload,
  beside: string,
): { why: string; over?: Over } {
  const { fresh, worst, value, setpoint } = overload;
  const said = num(value / setpoint);
  const ratio = Number(said);
  if (!fresh || !Number.isFinite(ratio)) {
    return { why: joined(overloadText(policy, overload), beside) };
  }
  const [is, aim] = [withUnit(policy, worst, value), withUnit(policy, worst, setpoint)];
  const why = joined(beyondText(overload, is, aim, said), beside);
  return { why, over: { signal: worst, value: is, setpoint: aim, ratio } };
}

function waitingText(policy: Policy, waiting: NonNullable<Overload['waiting']>): string {
  const { name, value, setpoint, for: waits } = waiting;
  const seen = `${name} ${withUnit(policy, name, value)} beside the ${withUnit(policy, name, setpoint)} setpoint`;
  if (waits.what === 'sustain') {
    return `${seen}, missed for ${num(waits.missedMs / 1000)} of ${num(waits.sustainMs / 1000)} s: hold`;
  }
  if (waits.what === 'witness') {
    const levels = waits.witnesses.map(
      (each) =>
        `${each.name} ${each.side === 'above' ? '>' : '<'} ${withUnit(policy, each.name, each.level)}`,
    );
    return `${seen}, waits for ${levels.join(' or ')} as witness: hold`;
  }
  return `${seen}, but slower routes are asked for, each at ${num(waits.slowdown)} × its usual time: hold`;
}

export function trafficText(sample: Sample): string {
  const { traffic } = sample;
  const inFlight = traffic.inFlight === null ? '' : `; observed in flight ${num(traffic.inFlight)}`;
  return `${num(traffic.okRate)} good answers/s${inFlight}`;
}

/** `cap 44 → 34; rate ceiling 210 → 190/s`, or nothing when nothing moves. */
export function changesText(
  before: InForceView,
  after: Pick<Proposal, 'state' | 'rate' | 'inFlightMax'>,
) {
  const { state, target } = before;
  let said = state === after.state ? '' : `${state} → ${after.state}`;
  if (after.inFlightMax !== target.inFlightMax) {
    said = joined(said, `cap ${num(target.inFlightMax)} → ${num(after.inFlightMax)}`);
  }
  if (after.rate !== target.rate) {
    said = joined(said, `rate ceiling ${num(target.rate)} → ${num(after.rate)}/s`);
  }
  return said;
}

/** What was seen, what it changes, and what was held back of that. */
export function sentence(
  why: string,
  before: InForceView,
  after: Pick<Proposal, 'state' | 'rate' | 'inFlightMax'>,
  held = '',
): string {
  return `${joined(joined(why, changesText(before, after)), held)}.`;
}

function joined(first: string, second: string): string {
  if (second === '') return first;
  return first === '' ? second : `${first}; ${second}`;
}
