/** The daemon's health and metrics over HTTP, and the server that listens. Stage: report. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { FlyballError } from '../errors.js';
import type { Metrics } from './metrics.js';
import { metricsPage } from './metrics-page.js';

/** A check answers null when all is well, else what is wrong. */
export type Check = () => Promise<string | null> | string | null;

export interface HealthChecks {
  /** Only the loop itself: never Redis, or an outage of Redis would have every daemon restarted. */
  live: Record<string, Check>;
  /** May this daemon be counted on now? */
  ready: Record<string, Check>;
  /** Works, but someone should look: shown by /healthz, which stays 200. */
  degraded: Record<string, Check>;
}

export interface HttpServer {
  /** `http://127.0.0.1:9464` */
  readonly address: string;
  close(): Promise<void>;
}

/** The routes; `?verbose` lists each check. Tests call `app.request` without a socket. */
export function createApp(checks: HealthChecks, metrics: Metrics): Hono {
  const app = new Hono();
  app.get('/livez', async (c) => {
    const { failed, lines } = await run(checks.live);
    return answer(failed, lines, c.req.query('verbose') !== undefined);
  });
  app.get('/readyz', async (c) => {
    const { failed, lines } = await run(checks.ready);
    return answer(failed, lines, c.req.query('verbose') !== undefined);
  });
  app.get('/healthz', async (c) => {
    const live = await run(checks.live);
    const degraded = await run({ ...checks.ready, ...checks.degraded });
    const lines = [...live.lines, ...degraded.lines];
    const verbose = c.req.query('verbose') !== undefined;
    return answer(live.failed, lines, verbose, degraded.failed ? 'degraded' : 'ok');
  });
  app.get('/metrics', async () => {
    return new Response(await metricsPage(metrics), {
      headers: { 'content-type': metrics.registry.contentType },
    });
  });
  app.notFound((c) => c.text('Not found. Try /livez, /readyz, /healthz, /metrics.\n', 404));
  return app;
}

/** Who sends a request byte by byte holds a connection no longer than this. */
const SLOW_CLIENTS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  /** A connection on which nothing moves; streams send a word more often. */
  silentMs: 30_000,
};

/** Listens; port 0 takes a free one. A port in use is an error that says which setting to change. */
export async function listen(
  app: Hono,
  host: string,
  port: number,
  limits: typeof SLOW_CLIENTS = SLOW_CLIENTS,
): Promise<HttpServer> {
  const server: Server = createServer(limits, getRequestListener(app.fetch));
  server.setTimeout(limits.silentMs);
  await new Promise<void>((ok, no) => {
    server.once('error', (error: NodeJS.ErrnoException) => no(cannotListen(host, port, error)));
    server.listen(port, host, ok);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    address: `http://${shown}:${bound.port}`,
    async close() {
      const closed = new Promise<void>((ok) => server.close(() => ok()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function run(checks: Record<string, Check>): Promise<{ failed: boolean; lines: string[] }> {
  let failed = false;
  const lines: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const fault = await check();
    if (fault !== null) failed = true;
    lines.push(fault === null ? `[+] ${name} ok` : `[-] ${name}: ${fault}`);
  }
  return { failed, lines };
}

function answer(failed: boolean, lines: string[], verbose: boolean, well = 'ok'): Response {
  const word = failed ? 'failed' : well;
  const body = verbose || failed ? `${lines.join('\n')}\n${word}\n` : `${word}\n`;
  return new Response(body, {
    status: failed ? 503 : 200,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  });
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): FlyballError {
  const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
  return new FlyballError(
    'FLYBALL_E_HTTP_LISTEN',
    `cannot listen on ${host}:${port}: ${why}. Set FLYBALL_HTTP_PORT to a free port (0 takes any) or FLYBALL_HTTP_HOST to an address of this machine.`,
    { cause: error },
  );
}
