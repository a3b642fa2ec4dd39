/** The address of a page (`#/limiters/checkout`), read and written; deep links survive a reload. Pure. Stage: dashboard. */

/** A change by the two numbers that name it. */
export interface ChangeRef {
  epoch: number;
  revision: number;
}

/** From when to when, ms; null: without an end there. */
export interface Times {
  sinceMs: number | null;
  untilMs: number | null;
}

export type Route =
  | { page: 'overview'; search: string; sort: string }
  | { page: 'limiter'; name: string; change: ChangeRef | null }
  | { page: 'policies'; name: string | null }
  | { page: 'history'; shown: Times }
  | { page: 'fleet' }
  | { page: 'unknown'; path: string };

/** Any text gives a route: what nobody wrote is `unknown`, never an exception. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?');
  const parts = path.split('/').filter((part) => part !== '');
  const [first, second, third, fourth] = parts.map(decoded);
  const params = new URLSearchParams(query);
  if (first === undefined || first === 'limiters') {
    if (second === undefined) {
      return {
        page: 'overview',
        search: params.get('q') ?? '',
        sort: params.get('sort') ?? '',
      };
    }
    if (third === undefined) return { page: 'limiter', name: second, change: null };
    const ref = /^(\d{1,15})\.(\d{1,15})$/.exec(third === 'changes' ? (fourth ?? '') : '');
    if (ref !== null) {
      const change = { epoch: Number(ref[1]), revision: Number(ref[2]) };
      return { page: 'limiter', name: second, change };
    }
  }
  if (first === 'policies') return { page: 'policies', name: second ?? null };
  if (first === 'history' && second === undefined) {
    const shown = {
      sinceMs: momentOf(params.get('since')),
      untilMs: momentOf(params.get('until')),
    };
    return { page: 'history', shown };
  }
  if (first === 'fleet' && second === undefined) return { page: 'fleet' };
  return { page: 'unknown', path };
}

/** The limiter whose stream a page follows; null: that of all. */
export function watchedBy(route: Route): string | null {
  return route.page === 'limiter' ? route.name : null;
}

export function overviewHash(search = '', sort = ''): string {
  const params = new URLSearchParams();
  if (search !== '') params.set('q', search);
  if (sort !== '') params.set('sort', sort);
  const query = params.toString();
  return query === '' ? '#/' : `#/?${query}`;
}

/** The times are written in UTC: who gets the address may live elsewhere. */
export function historyHash({ sinceMs, untilMs }: Times): string {
  const ends = [
    ['since', sinceMs],
    ['until', untilMs],
  ] as const;
  const query = ends.flatMap(([name, ms]) => (ms === null ? [] : [`${name}=${momentText(ms)}`]));
  return query.length === 0 ? '#/history' : `#/history?${query.join('&')}`;
}

/** `2026-05-04T02:00Z` */
function momentText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16)}Z`;
}

function momentOf(text: string | null): number | null {
  const ms = /^\d{4}-\d\d-\d\d/.test(text ?? '') ? Date.parse(text!) : Number.NaN;
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}

export function limiterHash(name: string): string {
  return `#/limiters/${encodeURIComponent(name)}`;
}

export function changeHash(name: string, { epoch, revision }: ChangeRef): string {
  return `${limiterHash(name)}/changes/${epoch}.${revision}`;
}

export function policyHash(name: string): string {
  return `#/policies/${encodeURIComponent(name)}`;
}

/** Whether two addresses name one page: only what is asked of it differs. */
export function isSamePage(one: string, other: string): boolean {
  return one.split('?')[0] === other.split('?')[0];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
