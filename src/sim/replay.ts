/** What a policy would have decided on a recorded past, minute by minute, by the same turn as the daemon's. Stage: simulate. */

import { tripKind, tripsOf } from '../decide/trips.js';
import type { Policy } from '../policy/schema.js';
import type { LimiterState } from '../redis/params.js';
import { byPolicy, type Change } from './controllers.js';
import { createSeconds, type Recorded, recordedValue } from './replay-recorded.js';

const TICK_MS = 1000;

/** What of the policy the record can tell. */
export interface Replayable {
  policy: Policy;
  /** Signals of which the record has no value: without them, as if the policy did not name them. */
  leftOut: string[];
  /** The breaker watches what the record does not tell. */
  breakerLeftOut: boolean;
}

/** The minute, and how the would-be limits stand at its end. */
export interface Replayed {
  recorded: Recorded;
  state: LimiterState;
  /** 0 while open, the probe rate while half-open. */
  rate: number;
  inFlightMax: number;
  /** Which of the would-be limits the recorded traffic would have met. */
  binds: 'rate' | 'cap' | 'breaker' | 'nothing';
  /** Objectives that the recorded values missed. */
  missed: string[];
  changes: Change[];
}

/** A signal without a record would be one that is lost, and a lost signal glides to safe values: it is left out. */
export function replayable(policy: Policy, recorded: readonly Recorded[]): Replayable {
  const told = (name: string) => {
    const signal = policy.signals[name]!;
    return recorded.some((of) => recordedValue(name, signal, of) !== null);
  };
  const names = Object.keys(policy.signals);
  const kept = new Set(names.filter(told));
  const only = <T>(of: Record<string, T>) =>
    Object.fromEntries(Object.entries(of).filter(([name]) => kept.has(name)));
  const { breaker, ...rest } = policy;
  const breaks =
    breaker !== undefined && tripsOf(policy).every(({ on }) => isCounted(policy, on, told));
  return {
    policy: {
      ...rest,
      signals: only(policy.signals),
      objective: only(policy.objective),
      ...(breaks && { breaker }),
    },
    leftOut: names.filter((name) => !kept.has(name)),
    breakerLeftOut: breaker !== undefined && !breaks,
  };
}

/** Breakers count outcomes, not values of a signal; a record has none by code or upstream, and no timeouts. */
function isCounted({ signals }: Policy, name: string, told: (name: string) => boolean): boolean {
  const signal = signals[name];
  if (signal === undefined || tripKind(signal) === 'level')
    return signal !== undefined && told(name);
  if ('upstream' in signal || 'code' in signal) return false;
  return signal.stat !== 'timeoutRatio';
}

/**
 * Each minute is played as its seconds, all alike, from the policy's own numbers on. The record answers as it did under
 * the limits of its time: nothing that is decided here changes what comes next. Gaps in the record are skipped.
 */
export function* replay(policy: Policy, recorded: readonly Recorded[]): Generator<Replayed> {
  let changes: Change[] = [];
  const controller = byPolicy(policy, (change) => changes.push(change), 'recommend');
  let inForce = controller.start;
  let state: LimiterState = 'closed';
  for (const of of recorded) {
    changes = [];
    const secondAt = createSeconds(policy, of);
    for (let ms = TICK_MS; ms <= of.spanMs; ms += TICK_MS) {
      const nowMs = of.atMs + ms;
      if (controller.dueMs <= nowMs) {
        inForce = controller.due();
        state = 'half-open';
      }
      const readings = secondAt(nowMs, inForce.generation);
      const before = changes.length;
      inForce = controller.tick(readings, nowMs, TICK_MS) ?? inForce;
      if (changes.length > before) state = changes.at(-1)!.decision.state;
    }
    const { rate, inFlightMax } = inForce;
    const limits = { state, rate, inFlightMax };
    yield {
      recorded: of,
      ...limits,
      binds: bindsOf(limits, of),
      missed: missedOf(policy, of),
      changes,
    };
  }
}

function bindsOf(
  { state, rate, inFlightMax }: Pick<Replayed, 'state' | 'rate' | 'inFlightMax'>,
  of: Recorded,
): Replayed['binds'] {
  if (state === 'open') return 'breaker';
  if (of.offeredPerSecond > rate) return 'rate';
  const inFlight = of.inFlight ?? ((of.okPerSecond + of.failedPerSecond) * (of.meanMs ?? 0)) / 1000;
  return inFlightMax > 0 && inFlight > inFlightMax ? 'cap' : 'nothing';
}

function missedOf(policy: Policy, of: Recorded): string[] {
  return Object.entries(policy.objective).flatMap(([name, { below, above }]) => {
    const value = recordedValue(name, policy.signals[name]!, of);
    if (value === null) return [];
    return value > (below ?? Infinity) || value < (above ?? -Infinity) ? [name] : [];
  });
}

export interface ReplaySummary {
  minutes: number;
  fromMs: number;
  toMs: number;
  /** Time between the first and the last without a record, ms. */
  missingMs: number;
  decisions: number;
  /** By reason code. */
  reasons: Record<string, number>;
  rate: { least: number; most: number };
  inFlightMax: { least: number; most: number };
  /** Minutes in which an objective was missed, and of those and of the others, where a would-be limit is met. */
  missed: number;
  metWhileMissed: number;
  metOtherwise: number;
}

/** `replayed` is not empty. */
export function summarize(replayed: readonly Replayed[]): ReplaySummary {
  const [first] = replayed;
  const last = replayed.at(-1)!;
  const toMs = last.recorded.atMs + last.recorded.spanMs;
  const fromMs = first!.recorded.atMs;
  const reasons: Record<string, number> = {};
  for (const { changes } of replayed) {
    for (const { decision } of changes) {
      reasons[decision.reason] = (reasons[decision.reason] ?? 0) + 1;
    }
  }
  const covered = replayed.reduce((sum, { recorded }) => sum + recorded.spanMs, 0);
  const met = replayed.filter(({ binds }) => binds !== 'nothing');
  const metWhileMissed = met.filter(({ missed }) => missed.length > 0).length;
  return {
    minutes: replayed.length,
    ...{ fromMs, toMs, missingMs: Math.max(0, toMs - fromMs - covered) },
    decisions: Object.values(reasons).reduce((sum, n) => sum + n, 0),
    reasons,
    rate: rangeOf(replayed.map(({ rate }) => rate)),
    inFlightMax: rangeOf(replayed.map(({ inFlightMax }) => inFlightMax)),
    missed: replayed.filter(({ missed }) => missed.length > 0).length,
    metWhileMissed,
    metOtherwise: met.length - metWhileMissed,
  };
}

function rangeOf(values: readonly number[]): { least: number; most: number } {
  const range = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
  for (const value of values) {
    range.least = Math.min(range.least, value);
    range.most = Math.max(range.most, value);
  }
  return range;
}
