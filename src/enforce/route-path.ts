/** A request's path as segments that routes are compared with, so that no spelling of a path leads round a limit. Stage: enforce. */

/**
 * As the framework reads it: query and fragment off, empty segments out (`//`, a slash at the end), percent-encoding
 * undone within each segment, case folded unless told. An encoded slash stays inside its segment, as in Express,
 * Fastify and Koa. Null: no path (`OPTIONS *`).
 */
export function segmentsOf(target: string, fold: boolean): string[] | null {
  const path = pathOf(target);
  if (path === null) return null;
  const segments: string[] = [];
  for (const part of path.split('/')) {
    if (part !== '') segments.push(segmentText(part, fold));
  }
  return segments;
}

/**
 * As proxies and WHATWG URLs read it: dot segments resolved, encoded ones too, and `\` a slash. Null: the same as
 * `segmentsOf` says.
 */
export function resolvedSegmentsOf(target: string, fold: boolean): string[] | null {
  const path = pathOf(target);
  if (path === null || !(path.includes('\\') || DOTS.test(path))) return null;
  const segments: string[] = [];
  for (const part of path.split(/[/\\]/)) {
    const text = segmentText(part, fold);
    if (text === '..') segments.pop();
    else if (text !== '' && text !== '.') segments.push(text);
  }
  return segments;
}

/** A segment of dots alone. */
const DOTS = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i;

/** A segment's text, of a route or of a path: a wrong encoding is taken as it stands. */
export function segmentText(part: string, fold: boolean): string {
  let text = part;
  if (part.includes('%')) {
    try {
      text = decodeURIComponent(part);
    } catch {
      // As sent.
    }
  }
  return fold ? text.toLowerCase() : text;
}

/** The path of a request target: of `/a?b`, of `http://host/a`. */
function pathOf(target: string): string | null {
  let from = 0;
  if (!target.startsWith('/')) {
    const host = target.indexOf('://');
    if (host < 0) return null;
    from = target.indexOf('/', host + 3);
    if (from < 0) return '/';
  }
  let to = target.length;
  for (const end of ['?', '#']) {
    const at = target.indexOf(end, from);
    if (at >= 0 && at < to) to = at;
  }
  return target.slice(from, to);
}
