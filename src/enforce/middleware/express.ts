/** Express 5 middleware: limits requests, answers denials, counts in flight. Stage: enforce. */
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

/** A request that passed carries its decision: `req.flyball.note({ upstream, code, dbWaitMs })`. */
export interface WithDecision {
  flyball?: TakeDecision;
}

export type ExpressHandler<Req> = (
  req: Req,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * `app.use(flyball(limiter, { attributes: (req) => ({ userId: req.user.id }) }))`. Denied: 429 by the client's
 * own bucket, 503 by the total rate, the in-flight cap, a reserve or an open breaker.
 */
export function flyball<Req extends IncomingMessage = IncomingMessage>(
  limiter: Limiter,
  options: MiddlewareOptions<Req> = {},
): ExpressHandler<Req> {
  checkMiddleware(limiter, options);
  return (req, res, next) => {
    takeFor(limiter, options, req, req)
      .then((decision) => {
        if (isGone(req, res)) return decision.done('cancelled');
        if (!res.headersSent) {
          const headers = answerHeaders(limiter, decision, options.legacy);
          for (const name in headers) res.setHeader(name, headers[name]!);
        }
        if (decision.allowed) {
          (req as WithDecision).flyball = decision;
          watchResponse(res, decision);
          return next();
        }
        if (res.headersSent) return res.end();
        const { status, contentType, problem } = denial(limiter, decision);
        res.statusCode = status;
        res.setHeader('Content-Type', contentType);
        res.end(JSON.stringify(problem));
      })
      .catch(next);
  };
}
