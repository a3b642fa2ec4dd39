/** A loop of known dead time and gain: ln signal follows ln limit, late and with noise. Stage: test. */
import type { LoopMemory, Sample } from '../../src/decide/types.js';
import type { Policy } from '../../src/testing.js';
import { observeLoop } from '../../src/tune/loop.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

/** Normal numbers from a seed. */
export function normalFrom(seed: number): () => number {
  let state = seed >>> 0 || 1;
  const even = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(even())) * Math.cos(2 * Math.PI * even());
}

export interface Synthetic {
  /** ms from a change of the limit until the signal is what it leads to; samples come on top of it. */
  deadMs: number;
  gain: number;
  noise: number;
  everyMs: number;
  seconds: number;
  seed?: number;
  /** Of ln cap, at a change; one comes about every `changeMs`. 0: it never changes. */
  step?: number;
  changeMs?: number;
  parts?: SampleParts;
  policy?: Policy;
}

/** What is seen of it: a sample every `everyMs`, while the cap goes up and down at random. */
export function watch(loop: Synthetic, before?: LoopMemory): LoopMemory | undefined {
  const { deadMs, gain, noise, everyMs, seconds, seed = 1, step = 0.2, changeMs = 9_000 } = loop;
  const policy = loop.policy ?? policyOf();
  const normal = normalFrom(seed);
  const history: { atMs: number; cap: number }[] = [{ atMs: Number.NEGATIVE_INFINITY, cap: 24 }];
  let memory = before;
  for (let nowMs = everyMs; nowMs <= seconds * 1000; nowMs += everyMs) {
    const { cap } = history.at(-1)!;
    const felt = history.findLast(({ atMs }) => atMs <= nowMs - deadMs)!.cap;
    const value = 180 * Math.exp(gain * Math.log(felt / 24) + noise * normal());
    const sample: Sample = sampleOf({
      dtMs: everyMs,
      signals: { p95: { value, fresh: true, ageMs: 300, count: 400 } },
      ...loop.parts,
      traffic: { intervalMs: everyMs, deniedByCap: 10, ...loop.parts?.traffic },
      inForce: {
        target: { rate: 100, capacity: 50, inFlightMax: cap },
        sinceChangeMs: nowMs - Math.max(0, history.at(-1)!.atMs),
        ...loop.parts?.inForce,
      },
    });
    memory = observeLoop(policy, memory, {}, sample);
    // Decided at this tick, in force at once.
    const due = nowMs - history.at(-1)!.atMs >= changeMs * Math.exp(0.3 * normal());
    if (step > 0 && due) {
      const away = Math.sign(normal() - 2 * Math.log(cap / 24)) || 1;
      history.push({ atMs: nowMs, cap: Math.max(2, Math.round(cap * Math.exp(away * step))) });
    }
  }
  return memory;
}
