/** Outcomes over the breaker's window, of the newest generation only. Stage: estimate. */
import type { OutcomeCounts } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import type { TelemetryReading } from '../sense/readings.js';
import { COUNT_WINDOW_MS, countWindowMs, failuresOf } from './signals.js';

export const RATIO_WINDOW_MS = 2_000;

interface OutcomeFrame {
  atMs: number;
  ok: number;
  failed: number;
  matching: number;
}

export interface OutcomeWindow {
  generation: number | null;
  frames: OutcomeFrame[];
}

/** Window of the breaker: its own `per`, else 1 minute for a count and 2 s for a ratio. */
export function breakerWindowMs(policy: Policy): number {
  const breaker = policy.breaker;
  if (breaker === undefined) return RATIO_WINDOW_MS;
  if (breaker.per !== undefined) return breaker.per;
  return countsErrors(policy) ? countWindowMs(policy, breaker.on) : RATIO_WINDOW_MS;
}

/** Does the breaker watch a count (`errors`) rather than a ratio? */
export function countsErrors(policy: Policy): boolean {
  const signal = policy.breaker === undefined ? undefined : policy.signals[policy.breaker.on];
  return signal?.stat === 'errors';
}

/** Adds one interval. Outcomes of an older generation than the newest seen are ignored. */
export function addOutcomes(
  policy: Policy,
  window: OutcomeWindow,
  t: TelemetryReading,
): { window: OutcomeWindow; tick: OutcomeFrame } {
  const none = { atMs: t.toMs, ok: 0, failed: 0, matching: 0 };
  const seen = t.generation;
  if (seen === null || (window.generation !== null && seen.id < window.generation)) {
    return { window: trim(policy, window, t.toMs), tick: none };
  }
  const frame = { atMs: t.toMs, ok: seen.ok, failed: seen.failed, matching: matchingOf(policy, t) };
  const frames = seen.id === window.generation ? window.frames : [];
  return {
    window: trim(policy, { generation: seen.id, frames: [...frames, frame] }, t.toMs),
    tick: frame,
  };
}

function matchingOf(policy: Policy, t: TelemetryReading): number {
  const seen = t.generation;
  if (seen === null) return 0;
  const signal = policy.breaker === undefined ? undefined : policy.signals[policy.breaker.on];
  if (signal?.stat !== 'errors') return seen.failed;
  const inGeneration = signal.code === undefined ? seen.failed : (seen.codes[signal.code] ?? 0);
  // Upstreams are not counted by generation: the smaller of the two numbers is surely of this one.
  return signal.upstream === undefined
    ? inGeneration
    : Math.min(inGeneration, failuresOf(signal, t));
}

function trim(policy: Policy, window: OutcomeWindow, nowMs: number): OutcomeWindow {
  const keepMs = Math.max(breakerWindowMs(policy), 1);
  // The newest stays even when it spoke of longer than the window: it is all there is.
  const frames = window.frames.filter(
    (frame, i) => i === window.frames.length - 1 || nowMs - frame.atMs < keepMs,
  );
  const recent = frames.filter((frame) => nowMs - frame.atMs < Math.max(keepMs, COUNT_WINDOW_MS));
  return { generation: window.generation, frames: recent };
}

export function outcomeCounts(
  policy: Policy,
  window: OutcomeWindow,
  tick: OutcomeFrame | null,
): OutcomeCounts {
  const sum = (pick: (frame: OutcomeFrame) => number) =>
    window.frames.reduce((total, frame) => total + pick(frame), 0);
  return {
    generation: window.generation,
    ok: sum((frame) => frame.ok),
    failed: sum((frame) => frame.failed),
    matching: sum((frame) => frame.matching),
    windowMs: breakerWindowMs(policy),
    fresh: tick !== null,
    tick: { ok: tick?.ok ?? 0, matching: tick?.matching ?? 0 },
  };
}
