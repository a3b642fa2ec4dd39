/** One guard for a whole service: each request finds the limiter whose adopted policy names its route. Stage: enforce. */
import { FlyballError, FlyballTypeError } from '../errors.js';
import { assertName } from '../redis/keys.js';
import { show } from './arguments.js';
import { openConnection } from './connection.js';
import { createLimiter, type Limiter } from './limiter.js';
import { expire } from './link.js';
import { type LimiterOptions, resolveOptions } from './options.js';
import { createRouteFollower } from './route-follow.js';
import { compileRoutes, type RouteEntry } from './route-table.js';
import { createWarnings } from './warnings.js';

/** Two turns fit into the 2 s within which a change is followed: one may be lost. */
const READ_EVERY_MS = 900;
/** A limiter that no route names any more is closed after this: a request may just have found it. */
const UNUSED_MS = 30_000;

/** What each of its limiters is created with; their numbers, subjects and algorithms come from the policies. */
export interface RoutesOptions
  extends Omit<
    LimiterOptions,
    | 'name'
    | 'group'
    | 'rate'
    | 'capacity'
    | 'inFlightMax'
    | 'perSubject'
    | 'algorithm'
    | 'windowMs'
    | 'cells'
    | 'exact'
  > {
  /** Look only at these limiters. Default: all that the registry in Redis knows. */
  limiters?: readonly string[];
  /** `/Pay` and `/pay` are two paths, as in Fastify; Express takes them for one. Default false. */
  caseSensitive?: boolean;
}

export interface RouteRequest {
  method: string;
  /** The request's target as the client sent it (`req.originalUrl`); a query is ignored. */
  path: string;
}

export interface RouteMatch {
  limiter: Limiter;
  /** As the policy writes it: what to label a request with, in place of its own path. */
  route: string;
}

export interface Routes {
  /** The limiter that a request falls under: that of the most exact route. Null: none names it. */
  find(request: RouteRequest): Limiter | null;
  /** The same with the route by which it was found. */
  match(request: RouteRequest): RouteMatch | null;
  /** What is in force, in the order in which routes are tried. */
  list(): readonly RouteEntry[];
  /** The limiters that requests have met so far: what `collectMetrics(routes)` shows. */
  limiters(): readonly Limiter[];
  /** Settles once the routes are known, or after one deadline without an answer; never rejects. */
  ready(): Promise<void>;
  /** Closes the limiters that it made, and its connection unless it is yours. */
  close(): Promise<void>;
}

/**
 * Limit by the routes of the adopted policies: `app.use(flyball(createRoutes(), { attributes }))`. A policy that is
 * adopted later, or names other routes, is followed within 2 s, without a deploy.
 */
export function createRoutes(options: RoutesOptions = {}): Routes {
  const { limiters: names = null, caseSensitive = false, ...shared } = options;
  checkNames(names);
  // Wrong options are told now, not at the first request.
  const { clock, prefix, deadlineMs } = resolveOptions({ ...shared, name: 'routes' });
  const warn = createWarnings(clock, options.onWarning);
  const connection = openConnection(options, warn);
  const { redis } = connection;
  const follower = createRouteFollower({ redis, prefix, limiters: names, clock, warn });
  const made = new Map<string, { limiter: Limiter; usedMs: number }>();
  let { table } = compileRoutes(new Map());
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closing: Promise<void> | null = null;

  function compile(): void {
    const compiled = compileRoutes(follower.routes, caseSensitive);
    table = compiled.table;
    if (compiled.faults.length > 0) {
      warn('FLYBALL_W_ROUTE_UNUSABLE', `routes are left out: ${compiled.faults.join('; ')}`);
    }
    if (compiled.shared.length > 0) {
      warn(
        'FLYBALL_W_ROUTE_SHARED',
        `a request falls under one limiter, but two name the same route: ${compiled.shared.join('; ')}. Give the route to one policy, or mount a second createRoutes({ limiters: […] }) for the other.`,
      );
    }
  }

  /** What cannot be read stays as it was, and is asked for again at the next turn. */
  async function read(): Promise<void> {
    if (redis.status === 'ready' && (await follower.read()) && closing === null) compile();
  }

  function turn(): void {
    timer = setTimeout(turn, READ_EVERY_MS);
    timer.unref();
    dropUnused();
    void read();
  }

  let known = false;
  let tellFirst = () => {};
  const first = new Promise<void>((ok) => {
    tellFirst = ok;
  });
  /** At a first connection and at each one after a loss: not only at the next turn. */
  function onReady(): void {
    void read().then(() => {
      if (!known && follower.complete && follower.routes.size === 0) tellNone();
      known = true;
      tellFirst();
    });
  }

  /** Once, at the start: a wrong prefix, Redis or name would pass every request unseen. */
  function tellNone(): void {
    const named =
      names === null ? 'no adopted policy' : `of ${names.join(', ') || 'none'} no policy`;
    warn(
      'FLYBALL_W_ROUTES_NONE',
      `${named} names a route under the prefix ${prefix}: every request passes until one does. Is \`flyball run\` running with limiter.routes in a policy, on this Redis and with this prefix?`,
    );
  }

  function dropUnused(): void {
    const nowMs = clock.monotonicMs();
    for (const [name, each] of made) {
      if (follower.routes.has(name)) each.usedMs = nowMs;
      if (nowMs - each.usedMs < UNUSED_MS || each.limiter.stats().inFlight > 0) continue;
      made.delete(name);
      void each.limiter.close();
    }
  }

  function match({ method, path }: RouteRequest): RouteMatch | null {
    if (closing) {
      throw new FlyballError(
        'FLYBALL_E_ENFORCE_CLOSED',
        'these routes are closed. Create them once per process and close them last.',
      );
    }
    const found = table.find(method, path);
    if (found === null) return null;
    let each = made.get(found.limiter);
    if (each === undefined) {
      const limiter = createLimiter({ ...shared, name: found.limiter });
      each = { limiter, usedMs: clock.monotonicMs() };
      made.set(found.limiter, each);
    }
    return { limiter: each.limiter, route: found.route };
  }

  async function close(): Promise<void> {
    clearTimeout(timer);
    redis.off('ready', onReady);
    tellFirst();
    await Promise.all([...made.values()].map(({ limiter }) => limiter.close()));
    connection.release();
  }

  redis.on('ready', onReady);
  // A client that waits to be used first would never connect.
  if (redis.status === 'wait') redis.connect().catch(() => {});
  if (redis.status === 'ready') onReady();
  timer = setTimeout(turn, READ_EVERY_MS);
  timer.unref();

  return {
    match,
    find: (request) => match(request)?.limiter ?? null,
    list: () => table.entries,
    limiters: () => [...made.values()].map(({ limiter }) => limiter),
    ready() {
      if (known) return Promise.resolve();
      return expire(first, deadlineMs).catch(() => {});
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function checkNames(names: readonly string[] | null): void {
  if (names === null) return;
  if (!Array.isArray(names)) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `limiters is ${show(names)}. Give names: limiters: ['checkout'], or leave it out for all.`,
    );
  }
  for (const name of names) assertName('limiter', name);
}
