/** The HTTP API on a socket of its own in this process, over a real Redis: tokens of each role, a limiter, raw requests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hono } from 'hono';
import { mountApi } from '../../src/api/app.js';
import { hostRule } from '../../src/api/hosts.js';
import type { ApiDeps } from '../../src/api/route.js';
import { createSessions } from '../../src/api/sessions.js';
import { createSharedAnswers } from '../../src/api/shared.js';
import { mountStatic } from '../../src/api/static.js';
import { createStreamPlaces } from '../../src/api/stream-places.js';
import { createTokenStore } from '../../src/api/token-store.js';
import { hashToken, newToken, tokenLine } from '../../src/api/tokens.js';
import type { Role } from '../../src/api/types.js';
import { createWatch, type Watch, type WatchOptions } from '../../src/api/watch.js';
import { type Clock, systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import type { RedisClient } from '../../src/redis/connect.js';
import { type HttpServer, listen } from '../../src/report/http.js';
import { createMetrics } from '../../src/report/metrics.js';

export interface TestApi {
  readonly url: string;
  readonly port: number;
  readonly tokens: Record<Role, string>;
  readonly tokensFile: string;
  readonly watch: Watch;
  readonly metrics: ReturnType<typeof createMetrics>;
  /** By a token of that role; null: without one. */
  ask(role: Role | null, method: string, path: string, more?: Asking): Promise<Response>;
  close(): Promise<void>;
}

export interface Asking {
  body?: unknown;
  headers?: Record<string, string>;
}

export interface ApiSetup {
  /** What it is told it listens on; it is always loopback. */
  boundTo?: string;
  hosts?: string[];
  clock?: Clock;
  watch?: Partial<WatchOptions>;
  dashboard?: string;
  heartbeatMs?: number;
  limits?: Parameters<typeof listen>[3];
  policies?: ApiDeps['policies'];
}

export async function startApi(redis: RedisClient, setup: ApiSetup = {}): Promise<TestApi> {
  const { boundTo = '127.0.0.1', hosts = [], clock = systemClock, limits } = setup;
  const dir = mkdtempSync(join(tmpdir(), 'flyball-api-'));
  const tokensFile = join(dir, 'tokens');
  const tokens: Record<Role, string> = {
    reader: newToken(),
    operator: newToken(),
    admin: newToken(),
  };
  const lines = Object.entries(tokens).map(([role, token]) =>
    tokenLine({ name: `the-${role}`, role: role as Role, sha256: hashToken(token) }),
  );
  writeFileSync(tokensFile, lines.join('\n'));
  const log = createLog({ level: 'silent' });
  const session = { redis, url: 'redis://test', prefix: undefined };
  const metrics = createMetrics('api');
  const shared = createSharedAnswers({ clock, freshMs: 100 });
  const watch = createWatch({
    ...{ session, clock, log, everyMs: 100 },
    onNews: () => shared.forget(),
    onClients: (clients) => metrics.apiStreams.set(clients),
    ...setup.watch,
  });
  const deps: ApiDeps = {
    ...{ session, watch, shared, clock, log },
    ...(setup.heartbeatMs === undefined ? {} : { heartbeatMs: setup.heartbeatMs }),
    tokens: createTokenStore({ places: { file: tokensFile, local: null }, clock, log }),
    sessions: createSessions(),
    streams: createStreamPlaces(),
    policies: setup.policies ?? (() => ({ loaded: [], faults: [] })),
    daemon: { owner: 'api:1:test', name: 'api' },
  };
  const app = new Hono();
  const rule = hostRule(boundTo, hosts);
  mountApi(app, { deps, hosts: rule, metrics });
  if (setup.dashboard !== undefined) mountStatic(app, rule, setup.dashboard);
  const http: HttpServer = await listen(app, '127.0.0.1', 0, limits);
  return {
    ...{ tokens, tokensFile, watch, metrics },
    url: http.address,
    port: Number(new URL(http.address).port),
    ask(role, method, path, { body, headers = {} } = {}) {
      return fetch(`${http.address}/api/v1${path}`, {
        method,
        headers: {
          ...(role === null ? {} : { authorization: `Bearer ${tokens[role]}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    },
    async close() {
      watch.close();
      await http.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Bytes as they are on a socket, and all that comes back until it is closed or `enough`. */
export function rawRequest(
  port: number,
  text: string,
  enough: (answer: string) => boolean = () => false,
): Promise<string> {
  return new Promise((ok) => {
    const socket: Socket = connect(port, '127.0.0.1');
    let answer = '';
    const end = () => {
      socket.destroy();
      ok(answer);
    };
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      answer += chunk;
      if (enough(answer)) end();
    });
    socket.on('close', end);
    socket.on('error', end);
    socket.write(text);
  });
}

/** The body of an answer. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into what they expect.
export async function jsonOf(reply: Response): Promise<any> {
  return reply.json();
}

/** The status of a raw answer, or 0. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
}

export interface StreamedEvent {
  id: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what they expect.
  data: any;
}

/** Follows a stream; `events` grows as they come. */
export function follow(api: TestApi, path = '/stream', headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const events: StreamedEvent[] = [];
  const state = { status: 0, ended: false };
  const done = (async () => {
    const reply = await fetch(`${api.url}/api/v1${path}`, { headers, signal: stop.signal });
    state.status = reply.status;
    if (reply.status !== 200) return;
    let rest = '';
    for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split('\n\n');
      rest = parts.pop()!;
      for (const part of parts) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1];
        if (field('event') === undefined) continue;
        events.push({
          id: field('id') ?? '',
          event: field('event')!,
          data: JSON.parse(field('data') ?? 'null'),
        });
      }
    }
  })()
    .catch(() => {})
    .finally(() => {
      state.ended = true;
    });
  return {
    events,
    state,
    async close() {
      stop.abort();
      await done;
    },
  };
}
