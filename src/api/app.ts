/** The HTTP API under `/api/v1`: mounts the table of routes behind the gate, and answers every fault as a problem. Stage: api. */
import type { Hono } from 'hono';
import type { Metrics } from '../report/metrics.js';
import { inertLine } from '../unsafe.js';
import { createClientLimit } from './client-limit.js';
import { createGate } from './gate.js';
import type { HostRule } from './hosts.js';
import { ApiError, problemAnswer } from './problem.js';
import type { ApiDeps, Replied } from './route.js';
import { routes } from './routes.js';
import { streamRoute } from './stream.js';

export const BASE = '/api/v1';

const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
};

export interface ApiOptions {
  deps: ApiDeps;
  hosts: HostRule;
  metrics: Metrics;
}

/** Adds the API to an app. */
export function mountApi(app: Hono, { deps, hosts, metrics }: ApiOptions): void {
  const gate = createGate(deps, hosts, createClientLimit());

  app.use(`${BASE}/*`, async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value);
    // The route's own pattern: a label of what anybody may send would be a label without end.
    const route = c.get('route' as never) as string | undefined;
    metrics.apiRequests.inc({ route: route ?? 'none', status: String(c.res.status) });
  });

  const methods = new Map<string, string[]>();
  for (const route of [...routes, streamRoute]) {
    const path = BASE + route.path.replace(/\{(\w+)\}/g, ':$1');
    methods.set(path, [...(methods.get(path) ?? []), route.method.toUpperCase()]);
    app.on(route.method.toUpperCase(), path, async (c) => {
      c.set('route' as never, `${route.method} ${route.path}` as never);
      try {
        const result = await route.handle(await gate.pass(c, route));
        return result instanceof Response ? result : jsonAnswer(result);
      } catch (error) {
        return failed(error);
      }
    });
  }
  for (const [path, allowed] of methods) {
    app.all(path, () => {
      const list = allowed.join(', ');
      return problemAnswer(
        new ApiError(405, 'FLYBALL_E_API_METHOD', `This path takes ${list}.`, {
          headers: { allow: list },
        }),
      );
    });
  }
  const unknown = () =>
    problemAnswer(
      new ApiError(404, 'FLYBALL_E_API_PATH', `No such path. ${BASE}/openapi.json lists them all.`),
    );
  app.all(`${BASE}/*`, unknown);
  app.all(BASE, unknown);

  function failed(error: unknown): Response {
    const answer = problemAnswer(error);
    if (answer.status >= 500 && !(error instanceof ApiError)) {
      deps.log.warn({ event: 'api_fault', err: error }, 'A request of the HTTP API failed.');
    }
    return answer;
  }
}

function jsonAnswer(result: object | Replied<object>): Response {
  const { answer, headers } =
    'answer' in result && 'headers' in result
      ? (result as Replied<object>)
      : { answer: result, headers: {} };
  return new Response(inertLine(JSON.stringify(answer)), {
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  });
}
