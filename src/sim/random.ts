/** Seeded randomness and the distributions that a plant draws its times from. Stage: simulate. */

/** mulberry32: the same seed gives the same numbers in [0, 1). */
export function seeded(seed: number): () => number {
  return drawFrom(new Uint32Array([seed >>> 0]), 0);
}

/** The same over a state kept in `states[index]`, so that it can be copied. */
export function drawFrom(states: Uint32Array, index: number): () => number {
  return () => {
    const state = (states[index]! + 0x6d2b79f5) >>> 0;
    states[index] = state;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Where streams of one seed begin that do not disturb each other: a change of one part leaves the draws of the others. */
export function streamStates(seed: number, count: number): Uint32Array {
  return Uint32Array.from(
    { length: count },
    (_, i) => (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b)) >>> 0,
  );
}

export function streams(seed: number, names: readonly string[]): (() => number)[] {
  const states = streamStates(seed, names.length);
  return names.map((_, i) => drawFrom(states, i));
}

/** How long something takes. `cv`: standard deviation ÷ mean. */
export type Times =
  | { kind: 'constant'; meanMs: number }
  | { kind: 'exponential'; meanMs: number }
  | { kind: 'lognormal'; meanMs: number; cv: number };

/** A source of times ≥ 0 with the given mean. */
export function drawTimes(times: Times, random: () => number): () => number {
  const { meanMs } = times;
  switch (times.kind) {
    case 'constant':
      return () => meanMs;
    case 'exponential':
      return () => -meanMs * Math.log(1 - random());
    case 'lognormal': {
      const variance = Math.log(1 + times.cv ** 2);
      const deviation = Math.sqrt(variance);
      const mu = Math.log(meanMs) - variance / 2;
      return () => Math.exp(mu + deviation * normal(random));
    }
  }
}

/** Box and Muller; one of the pair, so that a stream keeps no state beside its seed. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
