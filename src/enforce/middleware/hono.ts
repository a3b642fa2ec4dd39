/** Hono 4 middleware, on Node and elsewhere: limits requests, answers denials, counts in flight. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TakeDecision } from '../decision.js';
import { answerFields, denialOf } from './answer.js';
import { createGate } from './gate.js';
import { isGone } from './node.js';
import type { LimiterChoice, MiddlewareOptions } from './options.js';
import type { Adapter } from './request-facts.js';
import { type Visit, visitOf, watchResponse } from './visit.js';
import { watchBody } from './web-body.js';

export type {
  LimiterChoice,
  LimiterSource,
  MiddlewareOptions,
  PriorityHeader,
} from './options.js';
export type { RequestFacts } from './request-facts.js';

/** `new Hono<{ Variables: FlyballVariables }>()`: a request that passed carries its decision, `c.get('flyball')`. */
export interface FlyballVariables {
  flyball?: TakeDecision;
}

/** The part of Hono's context that is used; its types are not needed to build this. */
export interface ContextLike {
  req: {
    raw: Request;
    method: string;
    path: string;
    header(name: string): string | undefined;
    json<T>(): Promise<T>;
    matchedRoutes?: readonly { path: string }[];
  };
  env: unknown;
  get res(): Response;
  set res(response: Response | undefined);
  header(name: string, value: string): void;
  set(name: 'flyball', decision: TakeDecision): void;
  body(body: string | null, status: 429 | 503, headers?: Record<string, string>): Response;
}

export interface HonoOptions<C> extends MiddlewareOptions<C> {
  /** The other end of the connection, where that is not the Node adapter's to tell: `c => getConnInfo(c).remote.address`. */
  address?: (c: C) => string | undefined;
}

/** What `@hono/node-server` gives; without an answer while a socket is upgraded. */
interface NodeEnv {
  incoming?: IncomingMessage;
  outgoing?: ServerResponse;
}

const nodeOf = (c: ContextLike): NodeEnv => (c.env as NodeEnv | undefined) ?? {};
const carrierOf = (c: ContextLike): object => nodeOf(c).incoming ?? c.req.raw;

/** `app.use(flyball(limiter, { attributes: (c) => ({ userId: c.req.header('x-user') }) }))`. */
export function flyball<C extends ContextLike = ContextLike>(
  limiter: LimiterChoice,
  options: HonoOptions<C> = {},
): (c: C, next: () => Promise<void>) => Promise<Response | undefined> {
  const gate = createGate(adapterOf(options), limiter, options, ['address']);
  return (c, next) =>
    new Promise((ok, no) => {
      gate.enter(
        c,
        carrierOf(c),
        () => ok(next().then(nothing)),
        (visit, decision) => ok(settle(visit, decision, c, next, gate.legacyHeaders)),
        no,
      );
    });
}

function adapterOf<C extends ContextLike>({ address }: HonoOptions<C>): Adapter<C> {
  return {
    method: (c) => c.req.method,
    url: (c) => nodeOf(c).incoming?.url ?? c.req.path,
    header: (c, name) => c.req.header(name),
    peer: (c) => address?.(c) ?? nodeOf(c).incoming?.socket.remoteAddress,
    // The last that matched is the handler's own; without one, that of a middleware.
    route: (c) => c.req.matchedRoutes?.at(-1)?.path ?? null,
  };
}

async function settle(
  visit: Visit,
  decision: TakeDecision,
  c: ContextLike,
  next: () => Promise<void>,
  legacyHeaders: boolean,
): Promise<Response | undefined> {
  const { incoming, outgoing } = nodeOf(c);
  if (hasLeft(c, incoming, outgoing)) {
    decision.done('cancelled');
    return c.body(null, 503);
  }
  const fields = answerFields(visit, decision, legacyHeaders);
  for (const name in fields) c.header(name, fields[name]!);
  if (!decision.allowed) {
    const { status, contentType, body } = denialOf(visit, decision);
    return c.body(body, status, { 'Content-Type': contentType });
  }
  visit.admit(decision);
  c.set('flyball', decision);
  if (outgoing) watchResponse(outgoing, visit);
  else if (incoming) visit.follow(incoming.socket);
  if (incoming) await next();
  else await endWithBody(c, visit, next);
  // A handler that returns a Response of its own leaves out what was prepared.
  if (fields.RateLimit !== undefined && !c.res.headers.has('RateLimit')) {
    for (const name in fields) c.header(name, fields[name]!);
  }
  return undefined;
}

function hasLeft(
  c: ContextLike,
  incoming: IncomingMessage | undefined,
  outgoing: ServerResponse | undefined,
): boolean {
  if (incoming && outgoing) return isGone(incoming, outgoing);
  return incoming ? incoming.socket.destroyed : c.req.raw.signal?.aborted === true;
}

/** Elsewhere than on Node: the outermost limiter watches the body for all of them. */
async function endWithBody(c: ContextLike, visit: Visit, next: () => Promise<void>): Promise<void> {
  if (visit.earlier !== null) return next();
  const { raw } = c.req;
  const newest = () => visitOf(raw) ?? visit;
  raw.signal?.addEventListener('abort', () => newest().end('cancelled'), { once: true });
  try {
    await next();
  } catch (error) {
    newest().end('failed');
    throw error;
  }
  const { res } = c;
  const ends = {
    done: () => newest().answered(res.status),
    failed: () => newest().end('failed'),
    cancelled: () => newest().end('cancelled'),
  };
  // Nobody reads the body of an answer to HEAD.
  if (raw.method === 'HEAD') return ends.done();
  const watched = watchBody(res, ends);
  if (watched === res) return;
  // Without this Hono would merge the headers of both.
  c.res = undefined;
  c.res = watched;
}

const nothing = () => undefined;
