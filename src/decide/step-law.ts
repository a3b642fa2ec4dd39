/** Law `step`: the rule of thumb, timed on fresh data only. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf, clamp } from './bounds.js';
import { type Law, type LawResult, numberIn, startingPoint } from './law.js';
import { num } from './reasons.js';
import type { Sample } from './types.js';

type StepControl = Extract<Policy['control'], { law: 'step' }>;
type StepMemory = Record<
  'slowMs' | 'waitsMs' | 'healthyMs' | 'minuteMs' | 'minuteAnswers' | 'minuteFailed',
  number
>;

/**
 *   average response time > slowAboveMs for slowFor      → rate × down
 *   database waits > dbWaitsAbove for dbWaitsFor          → rate × down, and no raise meanwhile
 *   error rate < healthyBelow for healthyFor              → rate × up
 *
 * A rule that fired starts its time anew (100 → 80 → 64: one full slowFor each). Down beats up, and sets the
 * way up to zero. The error rate is judged by the minute; one with too few answers does not count.
 */
export const stepLaw: Law = (policy, before, sample) => {
  const control = policy.control as StepControl;
  const start = startingPoint(sample);
  const memory: StepMemory = {
    slowMs: numberIn(before, 'slowMs', 0),
    waitsMs: numberIn(before, 'waitsMs', 0),
    healthyMs: numberIn(before, 'healthyMs', 0),
    minuteMs: numberIn(before, 'minuteMs', 0),
    minuteAnswers: numberIn(before, 'minuteAnswers', 0),
    minuteFailed: numberIn(before, 'minuteFailed', 0),
  };
  const { traffic } = sample;
  const meanMs = averageMs(policy, sample);
  const waits = databaseWaits(policy, sample);
  const spanMs = traffic.fresh ? Math.max(0, traffic.intervalMs) : 0;

  if (meanMs !== null) {
    const slow = meanMs > control.slowAboveMs;
    memory.slowMs = slow ? memory.slowMs + (spanMs || sample.dtMs) : 0;
  }
  const waitsHigh = waits.value !== null && waits.value > (control.dbWaitsAbove ?? Infinity);
  if (waits.fresh) memory.waitsMs = waitsHigh ? memory.waitsMs + sample.dtMs : 0;
  if (traffic.fresh) countMinute(control, memory, sample, spanMs);
  if (waitsHigh) memory.healthyMs = 0;

  const terms = { ...memory, meanMs: meanMs ?? -1, dbWaits: waits.value ?? -1 };
  const result = (rate: number, reason: LawResult['reason'], why: string): LawResult => {
    const bounds = boundsOf(policy).rate;
    const clamped = clamp(rate, bounds.min, bounds.max);
    return { memory, rate: clamped, inFlightMax: start.inFlightMax, reason, why, terms };
  };
  if (memory.slowMs >= control.slowFor) {
    rearm(memory);
    const why = `average response time ${num(meanMs ?? 0)} ms above ${num(control.slowAboveMs)} ms for ${num(control.slowFor / 1000)} s`;
    return result(start.rate * control.down, 'step_slow', why);
  }
  if (control.dbWaitsAbove !== undefined && memory.waitsMs >= control.dbWaitsFor) {
    rearm(memory);
    const why = `${num(waits.value ?? 0)} database waits, above ${num(control.dbWaitsAbove)} for ${num(control.dbWaitsFor / 1000)} s`;
    return result(start.rate * control.down, 'step_db_waits', why);
  }
  if (memory.healthyMs >= control.healthyFor && !waitsHigh) {
    memory.healthyMs = 0;
    const why = `error rate below ${num(control.healthyBelow * 100)} % for ${num(control.healthyFor / 1000)} s`;
    return result(start.rate * control.up, 'step_healthy', why);
  }
  return result(start.rate, 'steady', 'no rule has held for long enough');
};

function rearm(memory: StepMemory): void {
  memory.slowMs = 0;
  memory.waitsMs = 0;
  memory.healthyMs = 0;
  memory.minuteMs = 0;
  memory.minuteAnswers = 0;
  memory.minuteFailed = 0;
}

/** A minute (or `healthyFor`, if shorter) is healthy, unhealthy, or too thin to say. */
function countMinute(
  control: StepControl,
  memory: StepMemory,
  sample: Sample,
  spanMs: number,
): void {
  const { traffic } = sample;
  memory.minuteMs = memory.minuteMs + spanMs;
  memory.minuteAnswers = memory.minuteAnswers + traffic.answers;
  memory.minuteFailed =
    memory.minuteFailed + Math.max(0, traffic.answers - (traffic.okRate * spanMs) / 1000);
  const wholeMs = Math.min(60_000, control.healthyFor);
  if (memory.minuteMs < wholeMs) return;
  const needed = (control.minAnswersPerMinute * wholeMs) / 60_000;
  // Half a failure of slack: the count came back from a rate.
  const ratio = Math.max(0, memory.minuteFailed - 0.01) / Math.max(1, memory.minuteAnswers);
  if (memory.minuteAnswers >= needed) {
    memory.healthyMs = ratio < control.healthyBelow ? memory.healthyMs + memory.minuteMs : 0;
  }
  memory.minuteMs = 0;
  memory.minuteAnswers = 0;
  memory.minuteFailed = 0;
}

/** The policy's own mean latency signal if it has one, else the telemetry's; null when not fresh. */
function averageMs(policy: Policy, sample: Sample): number | null {
  for (const [name, signal] of Object.entries(policy.signals)) {
    if (signal.stat !== 'latency' || signal.of !== 'mean') continue;
    const estimate = sample.signals[name];
    return estimate?.fresh ? estimate.value : null;
  }
  return sample.traffic.fresh ? sample.traffic.meanMs : null;
}

/** The most of all wait counts that the policy reads. */
function databaseWaits(policy: Policy, sample: Sample): { value: number | null; fresh: boolean } {
  let value: number | null = null;
  let fresh = false;
  for (const [name, signal] of Object.entries(policy.signals)) {
    if (signal.stat !== 'waiting' && signal.stat !== 'poolWaiting') continue;
    const estimate = sample.signals[name];
    if (estimate === undefined || estimate.value === null || !estimate.fresh) continue;
    value = Math.max(value ?? 0, estimate.value);
    fresh = true;
  }
  return { value, fresh };
}
