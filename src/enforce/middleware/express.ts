/** Express 5 middleware: limits requests, answers denials, counts in flight. Stage: enforce. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createGate } from './gate.js';
import { settleNode } from './node.js';
import type { LimiterChoice, MiddlewareOptions } from './options.js';
import { type Adapter, nodeAdapter } from './request-facts.js';

export type { WithDecision } from './node.js';
export type {
  LimiterChoice,
  LimiterSource,
  MiddlewareOptions,
  PriorityHeader,
} from './options.js';
export type { RequestFacts } from './request-facts.js';

export type ExpressHandler<Req> = (
  req: Req,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** The part of Express's request that is used; its types are not needed to build this. */
interface RequestLike extends IncomingMessage {
  originalUrl?: string;
  route?: { path?: unknown };
}

const adapter: Adapter<RequestLike> = {
  ...nodeAdapter<RequestLike>((req) => req, routeOf),
  // A mount point takes its own part off `url`.
  url: (req) => req.originalUrl ?? req.url ?? '',
};

/** Known to middleware of one route only: `app.get('/users/:id', flyball(limiter), …)`. */
function routeOf({ route }: RequestLike): string | null {
  return route?.path === undefined ? null : String(route.path);
}

/**
 * `app.use(flyball(limiter, { attributes: (req) => ({ userId: req.user.id }) }))`. Denied: 429 by the client's
 * own bucket, 503 by the total rate, the in-flight cap, a reserve or an open breaker.
 */
export function flyball<Req extends IncomingMessage = IncomingMessage>(
  limiter: LimiterChoice,
  options: MiddlewareOptions<Req> = {},
): ExpressHandler<Req> {
  const gate = createGate<Req>(adapter as Adapter<unknown> as Adapter<Req>, limiter, options);
  return (req, res, next) => {
    gate.enter(
      req,
      req,
      next,
      (visit, decision) => {
        if (settleNode(visit, decision, req, res, gate.legacyHeaders)) next();
      },
      next,
    );
  };
}
