/** All routes of the adopted policies in one table, compiled at a new revision: a request finds the most exact one. Stage: enforce. */
import { compareRoutes, parseRoute, type Route, type RouteSegment } from '../redis/route.js';
import { resolvedSegmentsOf, segmentsOf, segmentText } from './route-path.js';

export interface RouteEntry {
  limiter: string;
  /** As the policy writes it: `POST /api/pay/**`. */
  route: string;
}

export interface RouteTable {
  /** In the order in which they are tried. */
  readonly entries: readonly RouteEntry[];
  /** The one route that a request falls under, or null. `target` may carry a query. */
  find(method: string, target: string): RouteEntry | null;
}

export interface CompiledRoutes {
  table: RouteTable;
  /** Routes that cannot be used, and why: params of a newer version, or written by something else. */
  faults: string[];
  /** Routes that two limiters name alike: the first by name has it. */
  shared: string[];
}

/** A route as it is compared: texts decoded and folded. `tail`: what follows `**`; null without one. */
interface Compiled extends RouteEntry {
  method: string | null;
  head: readonly (string | null)[];
  tail: readonly (string | null)[] | null;
  order: number;
}

/** `limiters`: name → routes. Paths are compared without regard to case unless `caseSensitive`. */
export function compileRoutes(
  limiters: ReadonlyMap<string, readonly string[]>,
  caseSensitive = false,
): CompiledRoutes {
  const faults: string[] = [];
  const shared: string[] = [];
  const fold = !caseSensitive;
  const parsed: { limiter: string; route: Route; compiled: Compiled }[] = [];
  for (const [limiter, routes] of limiters) {
    for (const text of new Set(routes)) {
      const route = typeof text === 'string' ? parseRoute(text) : 'it is no text';
      if (typeof route === 'string') faults.push(`${limiter}: ${JSON.stringify(text)}: ${route}`);
      else parsed.push({ limiter, route, compiled: compile(limiter, route, fold) });
    }
  }
  parsed.sort(
    (a, b) =>
      compareRoutes(a.route, b.route) ||
      (a.route.text < b.route.text ? -1 : a.route.text > b.route.text ? 1 : 0) ||
      (a.limiter < b.limiter ? -1 : 1),
  );
  const seen = new Map<string, string>();
  const byFirst = new Map<string, Compiled[]>();
  /** Their first segment may be any. */
  const wild: Compiled[] = [];
  const entries: RouteEntry[] = [];
  for (const { limiter, route, compiled } of parsed) {
    const shape = JSON.stringify([compiled.method, compiled.head, compiled.tail]);
    const first = seen.get(shape);
    if (first !== undefined) {
      if (first !== limiter) shared.push(`${route.text} (${first} has it, ${limiter} too)`);
      continue;
    }
    seen.set(shape, limiter);
    compiled.order = entries.length;
    entries.push({ limiter, route: route.text });
    const start = compiled.head[0];
    if (typeof start !== 'string') wild.push(compiled);
    else if (!byFirst.get(start)?.push(compiled)) byFirst.set(start, [compiled]);
  }

  function first(method: string, segments: readonly string[]): RouteEntry | null {
    const named = segments.length > 0 ? (byFirst.get(segments[0]!) ?? NONE) : NONE;
    let i = 0;
    let j = 0;
    while (i < named.length || j < wild.length) {
      const a = named[i];
      const b = wild[j];
      const next = b === undefined || (a !== undefined && a.order < b.order) ? a! : b;
      if (next === a) i += 1;
      else j += 1;
      if (names(next, method, segments)) return next;
    }
    return null;
  }

  return {
    faults,
    shared,
    table: {
      entries,
      find(method, target) {
        if (entries.length === 0) return null;
        const segments = segmentsOf(target, fold);
        if (segments === null) return null;
        const found = first(method, segments);
        if (found !== null) return found;
        const resolved = resolvedSegmentsOf(target, fold);
        return resolved === null ? null : first(method, resolved);
      },
    },
  };
}

const NONE: readonly Compiled[] = [];

function compile(limiter: string, { text, method, segments }: Route, fold: boolean): Compiled {
  const any = segments.findIndex(({ kind }) => kind === 'any');
  const texts = (some: readonly RouteSegment[]) =>
    some.map((each) => (each.kind === 'text' ? segmentText(each.text, fold) : null));
  return {
    limiter,
    route: text,
    method,
    head: texts(any < 0 ? segments : segments.slice(0, any)),
    tail: any < 0 ? null : texts(segments.slice(any + 1)),
    order: 0,
  };
}

/** No backtracking: a route has one `**` at most, so its head and its tail lie where they lie. */
function names(
  { method, head, tail }: Compiled,
  asked: string,
  segments: readonly string[],
): boolean {
  if (method !== null && method !== asked && !(asked === 'HEAD' && method === 'GET')) return false;
  const { length } = segments;
  if (tail === null ? length !== head.length : length < head.length + tail.length) return false;
  return alike(head, segments, 0) && (tail === null || alike(tail, segments, length - tail.length));
}

function alike(
  wanted: readonly (string | null)[],
  segments: readonly string[],
  from: number,
): boolean {
  for (let i = 0; i < wanted.length; i++) {
    const text = wanted[i]!;
    if (text !== null && text !== segments[from + i]) return false;
  }
  return true;
}
