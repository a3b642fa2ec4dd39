/** Fastify 5 plugin: limits requests, answers denials, counts in flight. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TakeDecision } from '../decision.js';
import type { Limiter } from '../limiter.js';
import {
  answerHeaders,
  checkMiddleware,
  denial,
  isGone,
  type MiddlewareOptions,
  takeFor,
  watchResponse,
} from './answer.js';

export type { MiddlewareOptions } from './answer.js';

/** The part of Fastify's request, reply and instance that is used; its types are not needed to build this. */
export interface RequestLike {
  raw: IncomingMessage;
  flyball?: TakeDecision | null;
}
export interface ReplyLike {
  raw: ServerResponse;
  sent: boolean;
  code(status: number): this;
  header(name: string, value: string): this;
  send(payload?: unknown): this;
  hijack(): this;
}
export interface FastifyLike<Req, Reply> {
  decorateRequest(name: 'flyball', value: null): unknown;
  addHook(name: 'onRequest', hook: (request: Req, reply: Reply) => Promise<unknown>): unknown;
}

export interface FastifyOptions<Req> extends MiddlewareOptions<Req> {
  limiter: Limiter;
}

/**
 * `app.register(flyball, { limiter, attributes: (req) => ({ userId: req.headers['x-user'] }) })`. It binds all
 * routes of the instance that registers it; register it in a child instance to bind only that one's.
 */
export async function flyball<Req extends RequestLike, Reply extends ReplyLike>(
  app: FastifyLike<Req, Reply>,
  options: FastifyOptions<Req>,
): Promise<void> {
  const { limiter } = options;
  checkMiddleware(limiter, options);
  app.decorateRequest('flyball', null);
  app.addHook('onRequest', async (request, reply) => {
    const decision = await takeFor(limiter, options, request, request.raw);
    if (isGone(request.raw, reply.raw)) {
      decision.done('cancelled');
      // Nobody is there to answer: the route must not run.
      return reply.hijack();
    }
    if (decision.allowed) watchResponse(reply.raw, decision);
    const headers = answerHeaders(limiter, decision, options.legacy);
    for (const name in headers) reply.header(name, headers[name]!);
    if (decision.allowed) {
      request.flyball = decision;
      return;
    }
    const { status, contentType, problem } = denial(limiter, decision);
    // Bytes, since Fastify would add a charset to text, which this media type does not have.
    const body = Buffer.from(JSON.stringify(problem), 'utf8');
    return reply.code(status).header('content-type', contentType).send(body);
  });
}

// Fastify gives each plugin a scope of its own; this one is meant for the scope that registers it.
Object.assign(flyball, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'flyball',
});
