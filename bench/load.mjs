/** The load of a bench: Zipf keys from a fixed seed, a closed loop of n in flight, and interleaved rounds. */
import { median } from './report.mjs';

const YIELD_EVERY = 256;
const nextTurn = () => new Promise((ok) => setImmediate(ok));

/** Numbers in [0, 1) from a seed, the same in every run (mulberry32). */
export function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A long walk over `count` subjects of 8 characters; the k-th is asked for in proportion to 1/k. */
export function zipfSubjects(count, length = 65_536) {
  const random = randomFrom(20_260_101);
  const sums = new Float64Array(count);
  let sum = 0;
  for (let k = 0; k < count; k++) {
    sum += 1 / (k + 1);
    sums[k] = sum;
  }
  return Array.from({ length }, () => {
    const wanted = random() * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return subjectName(low);
  });
}

export function subjectName(index) {
  return `u${String(index).padStart(7, '0')}`;
}

/**
 * `inFlight` loops ask one after another for `ms`.
 * @param {(subject: string) => Promise<boolean>} ask true: admitted
 */
export async function closedLoop(ask, { subjects, inFlight, ms, from = 0 }) {
  let next = from;
  let decisions = 0;
  let admitted = 0;
  let failed = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const until = start + ms;
  async function loop() {
    while (performance.now() < until) {
      try {
        if (await ask(subjects[next++ % subjects.length])) admitted += 1;
        decisions += 1;
        // Answers from memory never leave the microtasks: sockets and timers get their turn here.
        if (decisions % YIELD_EVERY === 0) await nextTurn();
      } catch {
        failed += 1;
      }
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    perSecond: decisions / seconds,
    admitted: admitted / decisions,
    clientCpuUs: (user + system) / decisions,
    decisions,
    failed,
    next,
  };
}

/** What `run` counts of the server's CPU beside what it counts itself, µs a decision. */
export async function withServerCpu(server, run) {
  const before = await server.cpuSeconds();
  const result = await run();
  const serverCpuUs = (((await server.cpuSeconds()) - before) * 1e6) / result.decisions;
  return { ...result, serverCpuUs };
}

/** The median over rounds of `a ÷ b`, each ratio taken inside one round. */
export function ratioOf(runs, a, b, field = 'perSecond') {
  return median(runs.get(a).map((run, round) => run[field] / runs.get(b)[round][field]));
}

export function medianOf(runs, name, field) {
  return median(runs.get(name).map((run) => run[field]));
}

/** Every contestant in every round, each round beginning with another: what the machine does to one it does to all. */
export async function interleaved(contestants, rounds, measure) {
  const results = new Map(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < contestants.length; i++) {
      const contestant = contestants[(i + round) % contestants.length];
      results.get(contestant.name).push(await measure(contestant, round));
    }
  }
  return results;
}
