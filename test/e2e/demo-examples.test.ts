/** The example services run as they stand: they answer, count down, and refuse beyond their numbers. Stage: tests. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { until } from '../support/sdk-params.js';

describe.each(['express', 'fastify', 'hono', 'http', 'koa', 'nest'])('examples/%s', (name) => {
  // One each: all services are limited by the name `api`.
  let redis: TestRedis;
  let stop: () => Promise<number | null>;
  let url: string;

  beforeAll(async () => {
    redis = await startRedis();
    const file = fileURLToPath(new URL(`../../examples/${name}/server.mjs`, import.meta.url));
    const child = spawn(process.execPath, [file], {
      env: { ...process.env, FLYBALL_REDIS_URL: redis.url, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = new Promise<number | null>((ok) => child.once('exit', ok));
    stop = () => {
      child.kill('SIGTERM');
      return exited;
    };
    url = await new Promise<string>((ok) =>
      child.stdout!.once('data', (d) => ok(String(d).trim())),
    );
  });
  afterAll(async () => {
    await stop();
    await redis.stop();
  });

  test('an answer carries what is left; beyond the numbers 503 says why', async () => {
    const first = await fetch(`${url}/hello`);
    expect(first.status).toBe(200);
    expect(await first.json()).toEqual({ hello: 'world' });
    // Without Redis's word, on a machine too busy to have it in time, nothing is claimed to be left.
    await until(
      'an answer says what is left',
      async () => /^"api";r=\d+/.test((await fetch(`${url}/hello`)).headers.get('ratelimit') ?? ''),
      20_000,
    );

    // More than the 200 of its capacity, at once: some are refused, by the rate or by the cap.
    const answers = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const answer = await fetch(`${url}/hello`);
        return { status: answer.status, headers: answer.headers, body: await answer.json() };
      }),
    );
    const refused = answers.filter((answer) => answer.status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, headers, body } of refused) {
      expect(status).toBe(503);
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(headers.get('content-type')).toContain('application/problem+json');
      expect(body).toMatchObject({ limiter: 'api' });
    }
  });

  test('SIGTERM: it ends by itself, with 0, and leaves its share of the cap to the next one', async () => {
    const { inFlight } = limiterKeys({ name: 'api' });
    const admin = redis.client();
    // Beside the processes stands the sum of what they hold.
    const shares = async () => {
      const all = Object.entries(await admin.hgetall(inFlight));
      return all.filter(([process]) => !process.startsWith(':')).map(([, share]) => share);
    };
    await until('it has a share', async () => (await shares()).length === 1);
    expect(await stop()).toBe(0);
    const [left] = await shares();
    // `need share reports atUs`: no share any more.
    expect(left?.split(' ')[1] ?? '-1').toMatch(/^(0|-1)$/);
  });
});
