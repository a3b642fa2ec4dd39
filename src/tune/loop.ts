/** How long a change of the limit takes to show in the signal, and how much it does, seen from changes made anyway. Stage: tune. */
import { clamp } from '../decide/bounds.js';
import { bindsOf } from '../decide/evidence.js';
import { overloadOf } from '../decide/overload.js';
import type { LawMemory, LoopMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/**
 * With u = ln limit (the cap; the rate in the rate-only form) and y = ln(signal ÷ setpoint) of the worst signal, both
 * less their slow means, so that what drifts by itself drops out:
 *
 *   y(now) = gain · u(lag ago) + noise        one regression for each lag, all on the same samples
 *
 * by sums that forget. The lag that explains most is the dead time, age of the samples included. Only samples of a
 * limit that binds count, in mode auto and with the breaker closed: else a change has no effect to be seen. Nothing is
 * tried out for it: the law's own moves, a person's and a group's are what it learns from.
 */
export const LOOP = {
  /** A lag reaches from one of these to the next (ms ago). */
  edges: [500, 800, 1280, 2050, 3280, 5240, 8390, 13_400, 21_500, 34_400, 55_000, 88_000],
  /** A smaller step of ln limit is no change to learn from. */
  change: 0.03,
  /** Time constant of the slow means, in ms and at least so many intervals. */
  slowMs: 6_000,
  slowIntervals: 3,
  /** Forgetting: by samples taken in, and by time. */
  samples: 240,
  forgetMs: 1_800_000,
  /** A limit that has not bound for so long begins anew. */
  idleMs: 5_000,
  /** Samples whose limit has stood still for long tell nothing of it. */
  stirred: 0.01,
  /** Largest |ln signal ÷ setpoint| that counts: far beyond the setpoint nothing answers in proportion. */
  most: 1.5,
  /** Changes remembered. */
  changes: 24,
};

export const LAGS = LOOP.edges.length - 1;

export function noLoop(rateOnly: number): LoopMemory {
  return {
    rateOnly,
    limits: [],
    means: [],
    idleMs: 0,
    sinceMs: 0,
    changes: 0,
    weight: 0,
    yy: 0,
    uu: Array<number>(LAGS).fill(0),
    uy: Array<number>(LAGS).fill(0),
  };
}

/** One tick. `law`: the memory of the law, which says which of the two limits it moves. */
export function observeLoop(
  policy: Policy,
  before: LoopMemory | undefined,
  law: LawMemory,
  sample: Sample,
): LoopMemory | undefined {
  // What is only would-be changes no answer.
  if (sample.inForce.mode !== 'auto') return undefined;
  const noCap = policy.limiter.inFlightMax === undefined && policy.bounds?.inFlight === undefined;
  const rateOnly = law.rateOnly === 1 || noCap ? 1 : 0;
  const known = before !== undefined && before.rateOnly === rateOnly ? before : noLoop(rateOnly);
  const { target } = sample.inForce;
  const limit = rateOnly === 1 ? target.rate : target.inFlightMax;
  if (!(limit > 0) || !Number.isFinite(limit)) return known;
  const memory = withLimit(known, Math.log(limit), sample);
  takeIn(policy, memory, sample);
  return memory;
}

/** The limits as they stand now; a copy. */
function withLimit(before: LoopMemory, u: number, sample: Sample): LoopMemory {
  const dtMs = finiteMs(sample.dtMs);
  const limits = before.limits.slice();
  for (let i = 1; i < limits.length; i += 2) limits[i] = Math.min(limits[i]! + dtMs, 1e7);
  const last = limits.length > 0 ? limits[limits.length - 2]! : null;
  const next = { ...before, limits };
  next.sinceMs += dtMs;
  if (last !== null && Math.abs(u - last) < 1e-6) return next;
  limits.push(round(u), Math.min(finiteMs(sample.inForce.sinceChangeMs), dtMs));
  // Of those before the longest lag only the newest was in force within it.
  const longest = LOOP.edges[LAGS]!;
  let from = Math.max(0, limits.length - 2 * LOOP.changes);
  while (from + 3 < limits.length && limits[from + 3]! >= longest) from += 2;
  if (from > 0) next.limits = limits.slice(from);
  const learns = last !== null && before.means.length > 0 && Math.abs(u - last) >= LOOP.change;
  if (learns) next.changes += 1;
  return next;
}

/** What the sample shows, added to a memory that is the tick's own; lists are replaced, never written to. */
function takeIn(policy: Policy, memory: LoopMemory, sample: Sample): void {
  const { traffic, inForce } = sample;
  if (inForce.state !== 'closed' || inForce.gliding) {
    memory.means = [];
    return;
  }
  const overload = overloadOf(policy, sample);
  if (!overload.fresh || !traffic.fresh) return;
  const { rateBinds, capBinds } = bindsOf(sample);
  if (!(memory.rateOnly === 1 ? rateBinds : capBinds)) {
    memory.idleMs += finiteMs(traffic.intervalMs);
    if (memory.idleMs > LOOP.idleMs) memory.means = [];
    return;
  }
  const weight = policy.objective[overload.worst]?.weight ?? 1;
  const y = clamp(overload.z / weight, -LOOP.most, LOOP.most);
  const { sinceMs, means: before } = memory;
  const seen = lagged(memory.limits, y);
  memory.idleMs = 0;
  memory.sinceMs = 0;
  if (before.length !== seen.length) {
    memory.means = seen.map(round);
    return;
  }
  const slowMs = Math.max(LOOP.slowMs, LOOP.slowIntervals * finiteMs(traffic.intervalMs));
  const share = 1 - Math.exp(-sinceMs / slowMs);
  const means = before.slice();
  for (let i = 0; i < seen.length; i++) {
    const mean = before[i]!;
    // From here on `seen` holds the deviations.
    seen[i]! -= mean;
    means[i] = round(mean + share * seen[i]!);
  }
  memory.means = means;
  addTo(memory, seen, sinceMs);
}

/** Adds deviations [y, u of each lag] to the sums, which forget. */
function addTo(memory: LoopMemory, off: readonly number[], sinceMs: number): void {
  let stirred = false;
  for (let i = 1; i < off.length; i++) stirred ||= Math.abs(off[i]!) > LOOP.stirred;
  const keep = Math.exp(-sinceMs / LOOP.forgetMs) * (stirred ? 1 - 1 / LOOP.samples : 1);
  const y = stirred ? off[0]! : 0;
  memory.changes = round(memory.changes * keep);
  memory.weight = round(memory.weight * keep + (stirred ? 1 : 0));
  memory.yy = round(memory.yy * keep + y * y);
  const uu = memory.uu.slice();
  const uy = memory.uy.slice();
  for (let lag = 0; lag < LAGS; lag++) {
    const u = stirred ? off[lag + 1]! : 0;
    uu[lag] = round(uu[lag]! * keep + u * u);
    uy[lag] = round(uy[lag]! * keep + u * y);
  }
  memory.uu = uu;
  memory.uy = uy;
}

/** `y` and the mean of ln limit over each lag; what was in force before all that is known was in force for ever. */
function lagged(limits: readonly number[], y: number): number[] {
  const means = [y];
  let i = limits.length - 2;
  for (let lag = 0; lag < LAGS; lag++) {
    const from = LOOP.edges[lag]!;
    const to = LOOP.edges[lag + 1]!;
    while (i > 0 && limits[i + 1]! <= from) i -= 2;
    let sum = 0;
    for (let at = from; at < to; ) {
      const end = i > 0 ? Math.min(to, limits[i + 1]!) : to;
      sum += (end - at) * limits[i]!;
      at = end;
      if (at < to) i -= 2;
    }
    means.push(sum / (to - from));
  }
  return means;
}

function finiteMs(ms: number): number {
  return Number.isFinite(ms) ? clamp(ms, 0, 3_600_000) : 0;
}

/** Stored with every entry: seven decimals are enough. */
function round(value: number): number {
  return Math.round(value * 1e7) / 1e7;
}

/** A stored memory, if it is one. */
export function loopIn(value: unknown): LoopMemory | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const memory = { ...noLoop(0), ...value } as LoopMemory;
  const { limits, means, uu, uy, ...numbers } = memory;
  const lists = [limits, means, uu, uy];
  const finite = (list: unknown) => Array.isArray(list) && list.every(Number.isFinite);
  if (!lists.every(finite) || !Object.values(numbers).every(Number.isFinite)) return undefined;
  const fits = uu.length === LAGS && uy.length === LAGS && limits.length % 2 === 0;
  return fits && (means.length === 0 || means.length === LAGS + 1) ? memory : undefined;
}
