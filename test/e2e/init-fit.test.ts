/** `flyball init --fit`: what a service reports, its /metrics page and an early end size the numbers of the policy. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { cli } from '../support/cli-run.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

let server: TestRedis;
let page: Server;
let pageUrl: string;
let requests = 0;
const dir = mkdtempSync(join(tmpdir(), 'flyball-fit-'));

beforeAll(async () => {
  server = await startRedis();
  page = createServer((_req, res) => {
    requests += 40;
    res.setHeader('content-type', 'text/plain; version=0.0.4');
    res.end(
      ['# TYPE http_request_duration_seconds histogram']
        .concat(
          ['0.05', '0.1', '+Inf'].map(
            (le) => `_bucket{le="${le}"} ${le === '0.05' ? 0 : requests}`,
          ),
        )
        .concat([`_sum ${requests * 0.08}`, `_count ${requests}`])
        .map((line) => (line.startsWith('_') ? `http_request_duration_seconds${line}` : line))
        .join('\n')
        .concat('\n'),
    );
  });
  await new Promise<void>((ok) => page.listen(0, '127.0.0.1', ok));
  pageUrl = `http://127.0.0.1:${(page.address() as AddressInfo).port}/metrics`;
});
afterAll(async () => {
  page.close();
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

const measured = async (
  args: string,
  env: NodeJS.ProcessEnv = { FLYBALL_REDIS_URL: server.url },
) => {
  const shown = await cli(
    ['init', 'orders', '--dir', dir, '--dry-run', '--json', ...args.split(' ')],
    { env },
  );
  expect(shown).toMatchObject({ code: 0 });
  return JSON.parse(shown.stdout);
};

test('what a service reports sizes rate, cap and objectives, each with its reason', async () => {
  const limiter = createLimiter({ name: 'orders', url: server.url });
  const load = setInterval(() => {
    void limiter.run(null, () => new Promise((ok) => setTimeout(ok, 60))).catch(() => {});
  }, 20);
  try {
    const seen = await measured('--fit 5s');
    expect(seen.fit.from).toEqual(['services (telemetry in Redis)']);
    const { requests, perSecond, p95Ms, inFlight, errorRatio } = seen.fit;
    // A loaded machine makes fewer of them, and slower ones: the sizes follow whatever was seen.
    expect(requests).toBeGreaterThan(5);
    expect(perSecond).toBeGreaterThan(1);
    expect(p95Ms).toBeGreaterThan(50);
    expect(inFlight).toBeGreaterThanOrEqual(0);
    expect(errorRatio).toBe(0);
    const rate = Number(
      /^ {4}rate: ([\d.]+), .*; 1\.5 × the [\d.]+\/s seen$/m.exec(seen.policy)![1],
    );
    expect(rate).toBeGreaterThanOrEqual(1.5 * perSecond * 0.99);
    expect(rate).toBeLessThanOrEqual(1.5 * perSecond * 1.2);
    const below = Number(
      /p95: \{ below: '([\d.]+)ms' \}, \/\/ [\d.]+ ms was seen/.exec(seen.policy)![1],
    );
    expect(below).toBeGreaterThanOrEqual(1.5 * p95Ms * 0.99);
    expect(seen.policy).toMatch(
      /^ {4}inFlightMax: \d+, \/\/ most requests under way at once; 2 ×/m,
    );
    expect(seen.policy).toContain("errors: { below: '1%' }, // 0 % was seen");
  } finally {
    clearInterval(load);
    await limiter.close();
  }
});

test('without a service that reports: its /metrics page; Ctrl-C goes on with what was seen', async () => {
  const ended = measured(`--fit 1h --metrics ${pageUrl}`);
  // The first page only marks where counting begins: with the fourth there is something to go by.
  await vi.waitFor(() => expect(requests).toBeGreaterThanOrEqual(8 * 40), { timeout: 30_000 });
  process.emit('SIGINT');
  const seen = await ended;
  expect(seen.fit.seconds).toBeLessThan(3600);
  expect(seen.fit.from).toEqual(['the /metrics page']);
  expect(seen.fit.missing).toEqual([expect.stringContaining('services (telemetry in Redis)')]);
  expect(seen.fit.p95Ms).toBeGreaterThan(50);
  expect(seen.policy).toMatch(/rate: [\d.]+, .*; 1\.5 × the [\d.]+\/s seen$/m);
});

test('nothing that answers: guesses, told as guesses', async () => {
  const seen = await measured('--fit 1s');
  expect(seen.fit).toMatchObject({ requests: 0, perSecond: null, p95Ms: null, from: [] });
  expect(seen.policy).toContain('rate: 100, // tokens per second, a request takes one; a guess');
});
