/** Reads once a second which routes the adopted policies name: Redis is asked, so that no lost notice can matter. Stage: enforce. */
import type { Clock } from '../clock.js';
import { fleetKeys, limiterKeys, NAME_PATTERN } from '../redis/keys.js';
import type { ParamField } from '../redis/params.js';
import { parseServiceTerms } from '../redis/service-terms.js';
import { isOlder, type WriteOrder } from '../redis/write-order.js';
import { expire } from './link.js';
import type { RedisClient } from './options.js';
import { MISSING_RIGHT, type Warn } from './warnings.js';

/** Nobody waits for a reading. */
const PATIENCE_MS = 800;
const FIELDS = ['epoch', 'revision', 'terms'] satisfies ParamField[];

export interface RouteFollowOptions {
  redis: RedisClient;
  prefix: string;
  /** Only these limiters; null: all of the registry. */
  limiters: readonly string[] | null;
  clock: Clock;
  warn: Warn;
}

export interface RouteFollower {
  /** Limiter → routes, as last read; a limiter without routes is not there. */
  readonly routes: ReadonlyMap<string, readonly string[]>;
  /** A reading has seen all that it was to look at. */
  readonly complete: boolean;
  /** True when the routes of any limiter have changed. What cannot be read stays as it was; never rejects. */
  read(): Promise<boolean>;
}

interface Known {
  group: string;
  order: WriteOrder;
  /** As stored, to see a change. */
  text: string;
  routes: readonly string[];
}

export function createRouteFollower(options: RouteFollowOptions): RouteFollower {
  const { redis, prefix, warn } = options;
  const known = new Map<string, Known>();
  let routes: ReadonlyMap<string, readonly string[]> = new Map();
  let complete = false;
  const refused = (error: Error, what: string) => {
    if (!MISSING_RIGHT.test(error.message)) return;
    warn('FLYBALL_W_ROUTES_UNREADABLE', `${error.message}. ${what}`);
  };

  /** Name → group of the limiters to look at; null: the registry did not answer. */
  async function registry(): Promise<Map<string, string> | null> {
    const { limiters } = fleetKeys(prefix);
    const names = options.limiters;
    try {
      if (names === null) return new Map(Object.entries(await redis.hgetall(limiters)));
      if (names.length === 0) return new Map();
      const groups = await redis.hmget(limiters, ...names);
      return new Map(names.map((name, i) => [name, groups[i] ?? '']));
    } catch (error) {
      refused(
        error as Error,
        `Allow HGETALL and HMGET on ${limiters}: without them no route is known here.`,
      );
      return null;
    }
  }

  /** True when its routes are others than before. One call a limiter: on a cluster each lies elsewhere. */
  async function readOne(name: string, group: string, registered: boolean): Promise<boolean> {
    const { params } = limiterKeys({ name, group: group || undefined, prefix });
    const [epoch, revision, text] = await redis.hmget(params, ...FIELDS);
    const before = known.get(name);
    if (!epoch || !revision) {
      // Lost params say nothing; a limiter that the registry has forgotten as well is gone.
      return !registered && known.delete(name) && (before?.routes.length ?? 0) > 0;
    }
    const order = { epoch: Number(epoch), revision: Number(revision) };
    // A replica that lags behind what was read before.
    if (before !== undefined && isOlder(order, before.order)) return false;
    if (before?.text === (text ?? '')) {
      Object.assign(before, { order, group });
      return false;
    }
    const { routes: named } = parseServiceTerms(text);
    const now = Array.isArray(named) ? named : [];
    known.set(name, { group, order, text: text ?? '', routes: now });
    return JSON.stringify(now) !== JSON.stringify(before?.routes ?? []);
  }

  async function readAll(): Promise<boolean> {
    const listed = await registry();
    if (listed === null) return false;
    const asked: Promise<boolean>[] = [];
    for (const [name, group] of listed) {
      if (NAME_PATTERN.test(name) && (group === '' || NAME_PATTERN.test(group))) {
        asked.push(readOne(name, group, true));
      }
    }
    // An empty registry has been lost: it says nothing of the limiters that are known.
    if (listed.size > 0) {
      for (const [name, { group }] of known) {
        if (!listed.has(name)) asked.push(readOne(name, group, false));
      }
    }
    let changed = false;
    let all = true;
    for (const one of await Promise.allSettled(asked)) {
      if (one.status === 'fulfilled') changed ||= one.value;
      else {
        all = false;
        refused(one.reason, 'Allow HMGET on the params: without it no route is known here.');
      }
    }
    complete ||= all;
    return changed;
  }

  return {
    get routes() {
      return routes;
    },
    get complete() {
      return complete;
    },
    async read() {
      try {
        const changed = await expire(readAll(), PATIENCE_MS);
        if (changed) routes = withRoutes(known);
        return changed;
      } catch {
        // Redis away or slow: what was read last holds.
        return false;
      }
    },
  };
}

function withRoutes(known: ReadonlyMap<string, Known>): Map<string, readonly string[]> {
  const out = new Map<string, readonly string[]>();
  for (const [name, { routes }] of known) if (routes.length > 0) out.set(name, routes);
  return out;
}
