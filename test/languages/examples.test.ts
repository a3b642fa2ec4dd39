/** The examples in other languages run as they stand, on the library, beside the SDK on the same buckets. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { loadFunctions } from '../../src/redis/functions.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams } from '../support/sdk-params.js';

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
const PYTHON = process.env.SUITE_PYTHON ?? '/usr/bin/python3';
let server: TestRedis;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
  await loadFunctions(admin);
});
afterAll(() => server.stop());

const LIMITS = { rate: 0.01, capacity: 10, subjectRate: 0.01, subjectCapacity: 2 };

function python(...args: string[]) {
  const run = spawnSync(PYTHON, [example('python/limit.py'), ...args], {
    encoding: 'utf8',
    env: { ...process.env, FLYBALL_REDIS_URL: server.url },
  });
  expect(run.stderr).toBe('');
  return { status: run.status, out: run.stdout.trim() };
}

test('Python takes from the buckets that the SDK takes from, and hears the same', async () => {
  const { revision } = await setParams(admin, { name: 'py' }, LIMITS);
  expect(python('py', 'user:42')).toEqual({
    status: 0,
    out: `allowed=True reason=ok remaining=1 retryAfterMs=0 revision=${revision}`,
  });
  const api = createLimiter({ name: 'py', url: server.url, deadlineMs: 5_000 });
  expect(await api.take('user:42')).toMatchObject({ allowed: true, remaining: 0, source: 'redis' });
  await api.close();
  const denied = python('py', 'user:42');
  expect(denied.status).toBe(1);
  expect(denied.out).toMatch(/^allowed=False reason=subject remaining=0 retryAfterMs=\d{4,} /);
  expect(python('py', 'user:43', '2.5').out).toMatch(/reason=cost_exceeds_capacity .*=None/);
});

test('Python follows a group, and shadow: all admitted, from buckets of its own', async () => {
  await setParams(admin, { name: 'member', group: 'team' }, { ...LIMITS, mode: 'shadow' });
  await admin.hset('flyball:limiters', 'member', 'team');
  for (let i = 0; i < 3; i++) expect(python('member', 'ada').status).toBe(0);
  expect(python('member', 'ada').out).toMatch(/^allowed=True reason=subject /);
  expect(await admin.keys('flyball:member{team}:s:b*')).toHaveLength(2);
});

test('Python heeds what a person says of one subject, and what newcomers share', async () => {
  const known = { subjectRules: 1, subjectTerms: 'max=1' } as const;
  await setParams(admin, { name: 'known' }, { ...LIMITS, ...known });
  await admin.hset('flyball:{known}:o', 'bad', 'block -1 - - 1', 'vip', 'exempt -1 - - 1');
  expect(python('known', 'bad').out).toMatch(/^allowed=False reason=blocked .*=None/);
  expect(python('known', 'vip').out).toMatch(/^allowed=True reason=exempt /);
  for (const name of ['a', 'b', 'c']) expect(python('known', name).status).toBe(0);
  expect(python('known', 'd').out).toMatch(/^allowed=False reason=subject /);
});

test('Python encodes subjects as the golden file says', () => {
  const golden = JSON.parse(
    readFileSync(new URL('../contract/keys.json', import.meta.url), 'utf8'),
  ) as { subjects: { subject: string; bucket: string }[] };
  const code = `import sys, json; sys.path.insert(0, ${JSON.stringify(example('python'))}); sys.dont_write_bytecode = True
from limit import encode
print(json.dumps([encode(s) for s in json.load(sys.stdin)]))`;
  const run = spawnSync(PYTHON, ['-c', code], {
    encoding: 'utf8',
    input: JSON.stringify(golden.subjects.map(({ subject }) => subject)),
  });
  const keys = (JSON.parse(run.stdout) as string[]).map((part) => `flyball:{checkout}:b:${part}`);
  expect(keys).toEqual(golden.subjects.map(({ bucket }) => bucket));
});

test('redis-cli alone takes too', async () => {
  await setParams(admin, { name: 'shell' }, LIMITS);
  const take = (...args: string[]) =>
    spawnSync('sh', [example('redis-cli/take.sh'), 'shell', ...args], {
      encoding: 'utf8',
      env: { ...process.env, REDIS_CLI: `redis-cli -p ${server.port}` },
    });
  const first = take('user:1');
  expect(first.stderr).toBe('');
  expect(first.stdout.split('\n').slice(3, 6)).toEqual(['0', '1', '0']);
  expect(first.status).toBe(0);
  expect(take('user:1').status).toBe(0);
  const denied = take('user:1');
  expect(denied.status).toBe(1);
  expect(denied.stdout.split('\n')[3]).toBe('3');
  expect(take().stdout.split('\n').slice(3, 5)).toEqual(['0', '7']);

  await setParams(admin, { name: 'shell' }, { subjectRules: 1 });
  await admin.hset('flyball:{shell}:o', 'bad', 'block -1 - - 1', 'vip', 'exempt -1 - - 1');
  expect([take('bad').status, take('vip').status, take().status]).toEqual([1, 0, 0]);
  expect(take('bad').stdout.split('\n').slice(3, 6)).toEqual(['9', '0', '-1']);
});
