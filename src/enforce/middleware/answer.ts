/** What the Express and Fastify middleware share: who asks, how a denial answers, when a request has ended. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FlyballTypeError } from '../../errors.js';
import type { Priority } from '../../redis/calls.js';
import { clientAddress } from '../client-address.js';
import type { TakeDecision } from '../decision.js';
import { headersOf } from '../headers.js';
import type { Limiter } from '../limiter.js';
import { PROBLEM_TYPE, type Problem, problemOf } from '../problem.js';
import type { Attributes } from '../subject-template.js';

export interface MiddlewareOptions<Req> {
  /**
   * Attributes that fill the `perSubject.subject` template: `req => ({ userId: req.user.id })`. Required when
   * the template names any but `{ip}`. A request that lacks one is limited by its client's socket address.
   */
  attributes?: (req: Req) => Attributes;
  /** Tokens a request takes. Default 1. */
  cost?: (req: Req) => number;
  /** Default `default`. */
  priority?: (req: Req) => Priority;
  /** Also send `X-RateLimit-*`. Default false. */
  legacy?: boolean;
}

/** Faults that are known before the first request. */
export function checkMiddleware<Req>(limiter: Limiter, options: MiddlewareOptions<Req>): void {
  if (limiter.attributes.length > 0 && options.attributes === undefined) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_ATTRIBUTES',
      `limiter ${limiter.name}: its subject needs ${limiter.attributes.join(', ')}, but no attributes function was given. Pass attributes: (req) => ({ ${limiter.attributes.join(', ')} }).`,
    );
  }
  limiter.expectCompletions();
}

export async function takeFor<Req>(
  limiter: Limiter,
  options: MiddlewareOptions<Req>,
  req: Req,
  raw: IncomingMessage,
): Promise<TakeDecision> {
  await limiter.ready();
  const ip = clientAddress(raw.socket.remoteAddress);
  const subject = limiter.subjectFor(options.attributes?.(req) ?? {}, ip);
  const decision = await limiter.take(subject, {
    ...(options.cost ? { cost: options.cost(req) } : {}),
    ...(options.priority ? { priority: options.priority(req) } : {}),
  });
  return decision;
}

/** Header fields of any answer; none in shadow and off, which change no answer. */
export function answerHeaders(
  limiter: Limiter,
  decision: TakeDecision,
  legacy = false,
): Record<string, string> {
  const numbers = limiter.numbers();
  if (numbers === null || numbers.mode === 'shadow' || numbers.mode === 'off') return {};
  // Decided without Redis: what is left fleet-wide is not known, so nothing is claimed.
  if (decision.allowed && decision.source !== 'redis' && decision.source !== 'unmanaged') return {};
  return headersOf(limiter.name, decision, numbers, { legacy });
}

export function denial(
  limiter: Limiter,
  decision: TakeDecision,
): { status: number; contentType: string; problem: Problem } {
  const problem = problemOf(limiter.name, decision);
  return { status: problem.status, contentType: PROBLEM_TYPE, problem };
}

/** Report the end of an admitted request exactly once: answered, failed (5xx), or left by its client. */
export function watchResponse(res: ServerResponse, decision: TakeDecision): void {
  res.once('finish', () => {
    if (res.statusCode >= 500) decision.done('failed', { code: `HTTP_${res.statusCode}` });
    else decision.done('ok');
  });
  res.once('close', () => decision.done('cancelled'));
}

/** The client left while the decision was taken. */
export function isGone(raw: IncomingMessage, res: ServerResponse): boolean {
  return raw.destroyed || res.destroyed || res.closed;
}
