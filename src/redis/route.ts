/** A route of a policy, `POST /api/pay/**`: what it names, and which of two is the more exact one. Stage: policy, enforce. */

/** Bounds what a table of routes costs, however a policy is written. */
const MOST_SEGMENTS = 32;
const MOST_CHARACTERS = 256;

/** A segment of its own text, any one segment (`*`, `:name`), or any number of them, none too (`**`). */
export type RouteSegment = { kind: 'text'; text: string } | { kind: 'one' } | { kind: 'any' };

export interface Route {
  /** As the policy writes it: the name under which it is shown, never a request's own path. */
  text: string;
  /** null: every method. */
  method: string | null;
  segments: readonly RouteSegment[];
}

/** A route, or in words what is wrong with the text. */
export function parseRoute(text: string): Route | string {
  const [, method, path] = /^(?:([A-Z]+|\*) )?(\/\S*)$/.exec(text) ?? [];
  if (path === undefined) return "it is no route ('POST /api/pay/**', or a path alone)";
  if (text.length > MOST_CHARACTERS) return `it has more than ${MOST_CHARACTERS} characters`;
  if (/[?#\\]/.test(path)) return "a route has no query, fragment or '\\'. Write the path alone";
  const parts = path.slice(1).split('/');
  if (parts.at(-1) === '') parts.pop();
  if (parts.length > MOST_SEGMENTS) return `it has more than ${MOST_SEGMENTS} segments`;
  const segments: RouteSegment[] = [];
  for (const part of parts) {
    const segment = segmentOf(part);
    if (typeof segment === 'string') return segment;
    segments.push(segment);
  }
  if (segments.filter(({ kind }) => kind === 'any').length > 1) {
    return "it has more than one '**'. Keep one";
  }
  return { text, method: method === undefined || method === '*' ? null : method, segments };
}

function segmentOf(part: string): RouteSegment | string {
  if (part === '**') return { kind: 'any' };
  if (part === '*' || /^:[A-Za-z_][A-Za-z0-9_]*$/.test(part)) return { kind: 'one' };
  if (part === '') return "it has an empty segment ('//')";
  if (part === '.' || part === '..') return "it has a segment '.' or '..'";
  if (part.startsWith(':')) return `${JSON.stringify(part)} is no name. Write :id`;
  if (/[*{}]/.test(part)) {
    return `the segment ${JSON.stringify(part)} is neither text nor a wildcard. Write '*' or ':id' for one segment, '**' for any number`;
  }
  return { kind: 'text', text: part };
}

const RANK = { text: 0, one: 1, any: 2 } as const;

/**
 * Which of two that name one request is meant: below 0, `a`. Segment by segment, text before one, one before any
 * number, an end before any number; then a named method before every method.
 */
export function compareRoutes(a: Route, b: Route): number {
  const most = Math.max(a.segments.length, b.segments.length);
  for (let i = 0; i < most; i++) {
    const order = rankAt(a, i) - rankAt(b, i);
    if (order !== 0) return order;
  }
  if (a.method === b.method) return 0;
  if (a.method === null || b.method === null) return a.method === null ? 1 : -1;
  // GET serves HEAD too, unless HEAD has a route of its own.
  return a.method === 'HEAD' ? -1 : b.method === 'HEAD' ? 1 : 0;
}

function rankAt({ segments }: Route, i: number): number {
  const segment = segments[i];
  return segment === undefined ? 0 : RANK[segment.kind];
}
