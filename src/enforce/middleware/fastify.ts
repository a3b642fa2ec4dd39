/** Fastify 5 plugin: limits requests, answers denials, counts in flight. Stage: enforce. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { FlyballTypeError } from '../../errors.js';
import { show } from '../arguments.js';
import type { TakeDecision } from '../decision.js';
import { answerFields, denialOf } from './answer.js';
import { createGate } from './gate.js';
import { isGone } from './node.js';
import type { LimiterChoice, MiddlewareOptions } from './options.js';
import { type Adapter, nodeAdapter } from './request-facts.js';
import { type Visit, watchResponse } from './visit.js';

export type {
  LimiterChoice,
  LimiterSource,
  MiddlewareOptions,
  PriorityHeader,
} from './options.js';
export type { RequestFacts } from './request-facts.js';

/** The part of Fastify's request, reply and instance that is used; its types are not needed to build this. */
export interface RequestLike {
  raw: IncomingMessage;
  headers: IncomingHttpHeaders;
  ip?: string;
  params?: unknown;
  query?: unknown;
  /** Read only with `hook: 'preHandler'`. */
  body?: unknown;
  routeOptions?: { url?: string | undefined };
  flyball?: TakeDecision | null;
}
export interface ReplyLike {
  raw: ServerResponse;
  code(status: number): this;
  header(name: string, value: string): this;
  send(payload?: unknown): this;
  hijack(): this;
}
export interface FastifyLike<Req, Reply> {
  hasRequestDecorator(name: 'flyball'): boolean;
  decorateRequest(name: 'flyball', value: null): unknown;
  addHook(name: 'onRequest', hook: Hook<Req, Reply>): unknown;
  addHook(name: 'preHandler', hook: Hook<Req, Reply>): unknown;
}
type Hook<Req, Reply> = (request: Req, reply: Reply, done: (error?: Error) => void) => void;

export interface FastifyOptions<Req> extends MiddlewareOptions<Req> {
  limiter: LimiterChoice;
  /**
   * When it decides: `onRequest` (default), before anything of the body is read, or `preHandler`, where `attributes` may
   * look into `request.body`.
   */
  hook?: 'onRequest' | 'preHandler';
}

/** Of this plugin alone, and what Fastify itself reads from the options of one. */
const OF_FASTIFY = ['limiter', 'hook', 'prefix', 'logLevel', 'logSerializers'];
/** All paths that no route serves are one. */
const NO_ROUTE = '(none)';

const adapter = nodeAdapter<RequestLike>(
  (request) => request.raw,
  (request) => request.routeOptions?.url ?? NO_ROUTE,
);

/**
 * `app.register(flyball, { limiter, attributes: (req) => ({ userId: req.headers['x-user'] }) })`. It binds all
 * routes of the instance that registers it; register it in a child instance to bind only that one's.
 */
export async function flyball<Req extends RequestLike, Reply extends ReplyLike>(
  app: FastifyLike<Req, Reply>,
  options: FastifyOptions<Req>,
): Promise<void> {
  const { limiter, hook = 'onRequest' } = options;
  if (hook !== 'onRequest' && hook !== 'preHandler') {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `hook is ${show(hook)}. Use 'onRequest' or 'preHandler'.`,
    );
  }
  const gate = createGate(adapter as Adapter<Req>, limiter, options, OF_FASTIFY);
  if (!app.hasRequestDecorator('flyball')) app.decorateRequest('flyball', null);
  const decide: Hook<Req, Reply> = (request, reply, done) => {
    gate.enter(
      request,
      request.raw,
      done,
      (visit, decision) => {
        if (settle(visit, decision, request, reply, gate.legacyHeaders)) done();
      },
      done as (error: unknown) => void,
    );
  };
  if (hook === 'preHandler') app.addHook('preHandler', decide);
  else app.addHook('onRequest', decide);
}

/** True: go on to the route. */
function settle(
  visit: Visit,
  decision: TakeDecision,
  request: RequestLike,
  reply: ReplyLike,
  legacyHeaders: boolean,
): boolean {
  if (isGone(request.raw, reply.raw)) {
    decision.done('cancelled');
    // Nobody is there to answer: the route must not run.
    reply.hijack();
    return false;
  }
  const fields = answerFields(visit, decision, legacyHeaders);
  for (const name in fields) reply.header(name, fields[name]!);
  if (decision.allowed) {
    visit.admit(decision);
    watchResponse(reply.raw, visit);
    request.flyball = decision;
    return true;
  }
  const { status, contentType, body } = denialOf(visit, decision);
  // Bytes, since Fastify would add a charset to text, which this media type does not have.
  reply.code(status).header('content-type', contentType).send(Buffer.from(body, 'utf8'));
  return false;
}

// Fastify gives each plugin a scope of its own; this one is meant for the scope that registers it.
Object.assign(flyball, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'flyball',
});
