/** What a run was worth: goodput against the best constant limits, and what it cost. Stage: simulate. */

import { addBins, quantileOfBins } from '../histogram.js';
import type { Policy } from '../policy/schema.js';
import type { Change } from './controllers.js';
import type { Second } from './counts.js';
import type { Scenario } from './scenario.js';
import { latencyObjectiveMs } from './service.js';

export interface Score {
  /** Good answers ÷ those of the best constant limits, phase by phase, each at most 1, weighted by duration. */
  goodput: number;
  /** Of each phase, not capped; null where the best has none. */
  phases: (number | null)[];
  goodPerSecond: number;
  /** Seconds of which the objective's quantile of response time lay above it. */
  sloMissedS: number;
  /** Mean share of admitted requests whose answer nobody waited for, or came late. */
  wasted: number;
  /** Seconds from the worst disturbance until ten seconds in a row reach 90 % of the best; null: none. */
  convergenceS: number | null;
  /** Most admitted in five seconds ÷ what the service carries, less 1; 0 while load is below it. */
  overshoot: number;
  changesPerMinute: number;
  /** Times the breaker opened while the upstream was well. */
  falseTrips: number;
}

const WINDOW_S = 10;
const NEAR_BEST = 0.9;

export function scoreRun(
  policy: Policy,
  scenario: Scenario,
  seconds: readonly Second[],
  best: readonly Second[],
  changes: readonly Change[],
  capacityPerSecond: number,
): Score {
  const bounds = [...scenario.phases, scenario.durationS];
  const phases: (number | null)[] = [];
  let sum = 0;
  let weight = 0;
  for (let k = 0; k + 1 < bounds.length; k++) {
    const [from, to] = [bounds[k]!, bounds[k + 1]!];
    const most = good(best, from, to);
    if (most / (to - from) < 0.1) {
      phases.push(null);
      continue;
    }
    const ratio = good(seconds, from, to) / most;
    phases.push(ratio);
    sum += Math.min(1, ratio) * (to - from);
    weight += to - from;
  }
  const admitted = total(seconds, 'admitted');
  return {
    goodput: weight > 0 ? sum / weight : 1,
    phases,
    goodPerSecond: good(seconds, 0, seconds.length) / Math.max(1, seconds.length),
    sloMissedS: missed(policy, seconds),
    wasted: (total(seconds, 'late') + total(seconds, 'timedOut')) / Math.max(1, admitted),
    convergenceS: convergence(scenario, seconds, best),
    overshoot: overshoot(scenario, seconds, capacityPerSecond),
    changesPerMinute: (60 * changes.length) / scenario.durationS,
    falseTrips: changes.filter(({ atMs, decision }) => {
      if (decision.reason !== 'breaker_trip') return false;
      return !(scenario.outages ?? []).some(
        ([from, to]) => atMs / 1000 >= from && atMs / 1000 <= to + 10,
      );
    }).length,
  };
}

function good(seconds: readonly Second[], from: number, to: number): number {
  let sum = 0;
  for (let s = from; s < Math.min(to, seconds.length); s++) sum += seconds[s]!.good;
  return sum;
}

function total(seconds: readonly Second[], field: 'admitted' | 'late' | 'timedOut'): number {
  return seconds.reduce((sum, second) => sum + second[field], 0);
}

/** By windows of five seconds: a second alone is too thin to have a quantile. */
function missed(policy: Policy, seconds: readonly Second[]): number {
  const objectiveMs = latencyObjectiveMs(policy);
  if (objectiveMs === null) return 0;
  const quantile = quantileIn(policy);
  let count = 0;
  for (let s = 0; s < seconds.length; s += 5) {
    const bins = {};
    for (const second of seconds.slice(s, s + 5)) addBins(bins, second.latency);
    if ((quantileOfBins(bins, quantile) ?? 0) > objectiveMs) count += 5;
  }
  return count;
}

/** The quantile that the tightest objective for response time is about. */
export function quantileIn(policy: Policy): number {
  const tightest = latencyObjectiveMs(policy);
  for (const [name, { below }] of Object.entries(policy.objective)) {
    const signal = policy.signals[name];
    if (signal?.stat === 'latency' && below === tightest && signal.of !== 'mean') return signal.of;
  }
  return 0.5;
}

function convergence(
  scenario: Scenario,
  seconds: readonly Second[],
  best: readonly Second[],
): number | null {
  let worst: number | null = null;
  for (const from of scenario.disturbances) {
    const end = scenario.phases.find((phase) => phase > from) ?? scenario.durationS;
    let took = end - from;
    for (let s = from; s + WINDOW_S <= end; s++) {
      if (good(seconds, s, s + WINDOW_S) < NEAR_BEST * good(best, s, s + WINDOW_S)) continue;
      took = s - from;
      break;
    }
    worst = Math.max(worst ?? 0, took);
  }
  return worst;
}

function overshoot(scenario: Scenario, seconds: readonly Second[], perSecond: number): number {
  let most = 0;
  for (let s = 0; s + 5 <= seconds.length; s += 5) {
    const { load, speed = 1, databaseSpeed = 1, replicas = 1 } = scenario.at(s + 2);
    const carries = perSecond * replicas * Math.min(speed, databaseSpeed);
    if (load * perSecond < 1.05 * carries) continue;
    const admitted = total(seconds.slice(s, s + 5), 'admitted') / 5;
    most = Math.max(most, admitted / Math.max(0.1, carries) - 1);
  }
  return most;
}
