/** What every request under `/api/v1` passes before its route: host, rate, caller, role, origin, size, form. Stage: api. */

import type { HttpBindings } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';
import { z } from 'zod';
import {
  type Asked,
  CSRF_HEADER,
  callerOf,
  checkHost,
  checkOrigin,
  checkRole,
  checkSite,
} from './access.js';
import type { ClientLimit } from './client-limit.js';
import type { HostRule } from './hosts.js';
import { ApiError, invalid, tooOften } from './problem.js';
import type { Caller } from './roles.js';
import type { ApiDeps, Call, Route } from './route.js';

/** The longest body there is: a reason of 500 characters and some numbers are far below. */
export const MOST_BYTES = 65_536;

/** Of a route that takes none: what is asked for in vain is told, as elsewhere. */
const NO_QUERY = z.strictObject({});

export interface Gate {
  /** The checked request, or an `ApiError`. */
  pass(c: Context, route: Route): Promise<Call<unknown, unknown>>;
}

export function createGate(deps: ApiDeps, rule: HostRule, limit: ClientLimit): Gate {
  return {
    async pass(c, route) {
      const asked: Asked = {
        host: c.req.header('host'),
        origin: c.req.header('origin'),
        authorization: c.req.header('authorization'),
        cookie: c.req.header('cookie'),
        csrf: c.req.header(CSRF_HEADER),
      };
      checkHost(rule, asked.host);
      checkSite({
        site: c.req.header('sec-fetch-site'),
        mode: c.req.header('sec-fetch-mode'),
        dest: c.req.header('sec-fetch-dest'),
      });
      const { caller, client } = identified(c, asked);
      checkRole(caller, route, rule);
      if (route.method !== 'get') checkOrigin(asked, caller, route);
      return {
        ...{ deps, session: deps.session, caller, client, path: c.req.param() },
        query: parsed('query', route.query ?? NO_QUERY, queryOf(c)),
        body: route.body === undefined ? undefined : parsed('body', route.body, await bodyOf(c)),
        header: (name) => c.req.header(name),
        stillMay: () => may(asked, route),
        hangUp: () => (c.env as Partial<HttpBindings> | undefined)?.outgoing?.destroy(),
      };
    },
  };

  function may(asked: Asked, route: Route): boolean {
    try {
      checkRole(callerOf(asked, rule, deps), route, rule);
      return true;
    } catch {
      return false;
    }
  }

  /** Wrong tokens are counted too, by address. */
  function identified(c: Context, asked: Asked): { caller: Caller; client: string } {
    const address = `address ${addressOf(c)}`;
    let caller: Caller;
    try {
      caller = callerOf(asked, rule, deps);
    } catch (error) {
      spend(address);
      throw error;
    }
    const client = caller.name === null ? address : `token ${caller.name}`;
    spend(client);
    return { caller, client };
  }

  function spend(client: string): void {
    const { allowed, retryAfterMs } = limit.take(client, deps.clock.monotonicMs());
    if (allowed) return;
    throw tooOften(retryAfterMs);
  }
}

function parsed(what: 'body' | 'query', schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value);
  if (!result.success) throw invalid(what, result.error);
  return result.data;
}

function queryOf(c: Context): Record<string, string> {
  return Object.fromEntries(new URL(c.req.url).searchParams);
}

async function bodyOf(c: Context): Promise<unknown> {
  const type = (c.req.header('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/json') {
    throw new ApiError(
      415,
      'FLYBALL_E_API_NOT_JSON',
      `The body must be JSON: send content-type: application/json.`,
    );
  }
  const text = await boundedText(c.req.raw);
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(400, 'FLYBALL_E_API_INVALID', 'The body is no JSON.');
  }
}

/** Counted as it comes: what a header says of its length is a promise at best. */
async function boundedText(request: Request): Promise<string> {
  const tooLarge = () =>
    new ApiError(413, 'FLYBALL_E_API_TOO_LARGE', `A body has at most ${MOST_BYTES} bytes.`, {
      headers: { connection: 'close' },
    });
  if (Number(request.headers.get('content-length') ?? 0) > MOST_BYTES) throw tooLarge();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of (request.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += part.byteLength;
      if (bytes > MOST_BYTES) throw tooLarge();
      parts.push(part);
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // Who hangs up is no fault of the daemon's, and fills no log.
    throw new ApiError(400, 'FLYBALL_E_API_INVALID', 'The body ended before it was whole.');
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Without a socket (in tests) there is none. */
function addressOf(c: Context): string {
  try {
    return getConnInfo(c).remote.address ?? '?';
  } catch {
    return '?';
  }
}
