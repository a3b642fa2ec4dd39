import { afterEach, expect, test } from 'vitest';
import { createApp, type HttpServer, listen } from '../../src/report/http.js';
import { createMetrics } from '../../src/report/metrics.js';

const faults = { loop: null, redis: null, files: null } as Record<string, string | null>;
const metrics = createMetrics('unit');
const app = createApp(
  {
    live: { loop: () => faults.loop! },
    ready: { redis: async () => faults.redis! },
    degraded: { 'policy files': () => faults.files! },
  },
  metrics,
);
const servers: HttpServer[] = [];

afterEach(async () => {
  for (const name of Object.keys(faults)) faults[name] = null;
  for (const server of servers.splice(0)) await server.close();
});

test('well: three short answers', async () => {
  for (const path of ['/livez', '/readyz', '/healthz']) {
    const reply = await app.request(path);
    expect([path, reply.status, await reply.text()]).toEqual([path, 200, 'ok\n']);
  }
});

test('Redis away: not ready, but alive; healthz is degraded and stays 200', async () => {
  faults.redis = 'no answer within 1000 ms';
  expect((await app.request('/livez')).status).toBe(200);
  const ready = await app.request('/readyz');
  expect(ready.status).toBe(503);
  expect(await ready.text()).toBe('[-] redis: no answer within 1000 ms\nfailed\n');
  const health = await app.request('/healthz');
  expect([health.status, await health.text()]).toEqual([200, 'degraded\n']);
});

test('a stuck loop is not alive', async () => {
  faults.loop = 'no tick within three periods';
  expect((await app.request('/livez')).status).toBe(503);
  expect((await app.request('/healthz')).status).toBe(503);
});

test('?verbose lists every check; a broken policy file degrades and does not unready', async () => {
  faults.files = 'checkout.ts: rate is "ten"';
  expect((await app.request('/readyz')).status).toBe(200);
  const health = await app.request('/healthz?verbose');
  expect(await health.text()).toBe(
    '[+] loop ok\n[+] redis ok\n[-] policy files: checkout.ts: rate is "ten"\ndegraded\n',
  );
});

test('metrics: our names, HELP on each, and no label for a subject', async () => {
  metrics.rate.set({ limiter: 'checkout' }, 100);
  const text = await (await app.request('/metrics')).text();
  expect(text).toContain('flyball_enforce_rate_tokens_per_second{limiter="checkout"} 100');
  const names = [...text.matchAll(/^# TYPE (flyball_\S+) (\S+)/gm)];
  expect(names.length).toBeGreaterThan(30);
  for (const [, name, type] of names) {
    expect(text).toMatch(new RegExp(`^# HELP ${name} .{10,}`, 'm'));
    expect(name).toMatch(
      /^flyball_(enforce|sense|estimate|decide|guard|actuate|audit|policy|daemon|api)_[a-z_]+$/,
    );
    if (type === 'counter') expect(name).toMatch(/_total$/);
  }
  expect(text).not.toMatch(/subject=/);
});

test('an unknown path names the known ones', async () => {
  const reply = await app.request('/');
  expect(reply.status).toBe(404);
  expect(await reply.text()).toContain('/readyz');
});

test('listens on a free port; a port in use is an error that names the setting', async () => {
  const server = await listen(app, '127.0.0.1', 0);
  servers.push(server);
  expect((await fetch(`${server.address}/livez`)).status).toBe(200);
  const port = Number(new URL(server.address).port);
  await expect(listen(app, '127.0.0.1', port)).rejects.toThrow(
    `cannot listen on 127.0.0.1:${port}: the port is in use. Set FLYBALL_HTTP_PORT`,
  );
});
