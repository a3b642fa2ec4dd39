/** The HTTP API under `/api/v1`: mounts the table of routes behind the gate, and answers every fault as a problem. Stage: api. */
import type { Hono } from 'hono';
import type { Metrics } from '../report/metrics.js';
import { inertLine } from '../unsafe.js';
import { createClientLimit } from './client-limit.js';
import { createGate } from './gate.js';
import type { HostRule } from './hosts.js';
import { ApiError, problemAnswer } from './problem.js';
import type { ApiDeps, Call, Replied, Route } from './route.js';
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
      const reads = route.method === 'get' || route.changesNothing === true;
      c.set('route' as never, `${route.method} ${route.path}` as never);
      try {
        const call = await gate.pass(c, route);
        if (route.shared === true) return jsonResponse(await sharedText(route, call));
        const result = await route.handle(call);
        // Who changed something sees it in what they ask next.
        if (!reads) deps.shared.forget();
        return result instanceof Response ? result : jsonAnswer(result);
      } catch (error) {
        return failed(error, reads);
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

  function sharedText(route: Route, call: Call<unknown, unknown>): Promise<string> {
    const lane = `${route.id} ${call.path.limiter ?? ''}`;
    // As it was checked, in the order of the schema: what means the same is asked once.
    const question = JSON.stringify(call.query);
    const asked = { client: call.client, lane, question };
    return deps.shared.answer(asked, async () => textOf(await route.handle(call)));
  }

  function failed(error: unknown, reads: boolean): Response {
    const answer = problemAnswer(error, { reads });
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
  return jsonResponse(textOf(answer), headers);
}

const textOf = (answer: object) => inertLine(JSON.stringify(answer));

function jsonResponse(text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, {
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  });
}
