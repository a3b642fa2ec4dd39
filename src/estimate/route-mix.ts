/** Each route against its own usual time, so that a change of what is asked for is not read as congestion. Stage: estimate. */
import type { RouteMix } from '../decide/types.js';
import type { TelemetryReading } from '../sense/readings.js';
import { round6 } from './finite.js';

interface Answered {
  n: number;
  sumMs: number;
}

/** Plain JSON. Lost on a restart, learnt again within minutes. */
export interface MixState {
  /** What is usual of each route: counts and times that fade. */
  usual: Record<string, Answered>;
  /** The newest readings, until they hold `POOL` answers. */
  recent: { atMs: number; routes: Record<string, Answered> }[];
}

/** The usual is what was seen in about so long. */
const MEMORY_MS = 600_000;
/** Answers behind what is usual: of all routes, and of one. */
const LEARNT = 200;
const LEARNT_ROUTE = 30;
/** Share of the present answers whose route is known, below which nothing is said. */
const COVERED = 0.8;
const POOL = 200;
const POOL_MS = 10_000;
const MOST_ROUTES = 40;

export function emptyMix(): MixState {
  return { usual: {}, recent: [] };
}

/**
 *   expected   Σ nᵣ · usualᵣ ÷ Σ nᵣ      what the routes of now would take at their usual times
 *   shift      expected ÷ what the usual routes take           above 1: slower ones are asked for
 *   slowdown   Σ timeᵣ ÷ Σ nᵣ · usualᵣ                         1: each route takes its usual time
 *
 * Learnt only while nothing is denied and the objectives hold (`healthy`): what is seen under a limit, or in an
 * overload, is not the service's own. Undefined: too little is known, or there is but one route.
 */
export function routeMix(
  before: MixState,
  t: TelemetryReading,
  healthy: boolean,
): { mix: MixState; seen: RouteMix | undefined } {
  const routes = soundRoutes(t);
  if (routes === null) return { mix: before, seen: undefined };
  const { toMs } = t;
  const kept = before.recent.filter((each) => each.atMs < toMs && toMs - each.atMs < POOL_MS);
  const recent = newest([...kept, { atMs: toMs, routes }]);
  const seen = judged(before.usual, recent);
  const learns = healthy && !limits(t);
  const usual = learns ? learnt(before.usual, routes, t.toMs - t.fromMs) : before.usual;
  return { mix: { usual, recent }, seen };
}

function soundRoutes(t: TelemetryReading): Record<string, Answered> | null {
  let found: Record<string, Answered> | null = null;
  for (const [name, { n, sumMs }] of Object.entries(t.routes ?? {})) {
    if (!(n > 0 && n <= 1e12 && sumMs >= 0 && sumMs <= 1e12)) continue;
    found ??= Object.create(null) as Record<string, Answered>;
    found[name] = { n, sumMs };
  }
  return found;
}

/** Denials of single subjects are no limit of the whole. */
function limits({ denied }: TelemetryReading): boolean {
  for (const reason in denied) {
    if (reason !== 'subject' && reason !== 'blocked' && denied[reason]! > 0) return true;
  }
  return false;
}

function newest(frames: MixState['recent']): MixState['recent'] {
  let total = 0;
  let from = frames.length;
  while (from > 0 && total < POOL) {
    from -= 1;
    for (const { n } of Object.values(frames[from]!.routes)) total += n;
  }
  return frames.slice(from);
}

function judged(usual: MixState['usual'], recent: MixState['recent']): RouteMix | undefined {
  const learnt = Object.values(usual);
  const total = learnt.reduce((sum, { n }) => sum + n, 0);
  if (learnt.length < 2 || total < LEARNT) return undefined;
  let n = 0;
  let known = 0;
  let sumMs = 0;
  let expectedMs = 0;
  for (const { routes } of recent) {
    for (const [name, now] of Object.entries(routes)) {
      n += now.n;
      const own = usual[name];
      if (own === undefined || own.n < LEARNT_ROUTE) continue;
      known += now.n;
      sumMs += now.sumMs;
      expectedMs += (now.n * own.sumMs) / own.n;
    }
  }
  const usualMs = learnt.reduce((sum, each) => sum + each.sumMs, 0) / total;
  if (!(known >= COVERED * n && expectedMs > 0 && usualMs > 0)) return undefined;
  return {
    shift: round6(expectedMs / known / usualMs),
    slowdown: round6(sumMs / expectedMs),
  };
}

function learnt(
  before: MixState['usual'],
  routes: Record<string, Answered>,
  spanMs: number,
): MixState['usual'] {
  const kept = Math.exp(-Math.max(0, spanMs) / MEMORY_MS);
  const next = Object.create(null) as MixState['usual'];
  for (const [name, { n, sumMs }] of Object.entries(before)) {
    // A route that is hardly asked for any more makes room.
    if (n * kept >= 0.5) next[name] = { n: n * kept, sumMs: sumMs * kept };
  }
  for (const [name, { n, sumMs }] of Object.entries(routes)) {
    const own = next[name];
    if (own !== undefined) next[name] = { n: own.n + n, sumMs: own.sumMs + sumMs };
    else if (Object.keys(next).length < MOST_ROUTES) next[name] = { n, sumMs };
  }
  return next;
}
