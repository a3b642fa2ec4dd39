/** `flyball doctor` on a real Redis: findings with their mends. */
import { describe, expect, test } from 'vitest';
import { keys, readingRig } from '../support/reading-rig.js';
import { freePort } from '../support/redis-server.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);

describe('doctor', { timeout: 120_000 }, () => {
  test('finds a missing append-only file and a missing daemon, and still passes', async () => {
    const shown = await rig.run('doctor');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^ok {4}redis +answers at redis:\/\/127\.0\.0\.1:\d+/m);
    expect(shown.stdout).toMatch(/^ok {4}version +Redis 7/m);
    expect(shown.stdout).toMatch(/^warn {2}persistence .*\n +→ Set appendonly yes/m);
    expect(shown.stdout).toMatch(/^ok {4}scripts +\d+ scripts load/m);
    expect(shown.stdout).toMatch(/^ok {4}rights/m);
    expect(shown.stdout).toMatch(/^warn {2}daemon +no daemon watches checkout/m);
    expect(parse((await rig.run('doctor --json')).stdout)).toMatchObject({
      schema: 1,
      ok: true,
      failed: 0,
    });
  });

  test('eviction of params, rights that are missing and missing params fail, each with its mend', async () => {
    await rig.redis.config('SET', 'maxmemory', '200mb');
    await rig.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await rig.redis.acl(
      'SETUSER',
      'reader',
      'on',
      '>pw',
      '~*',
      '&*',
      '+@read',
      '+@connection',
      '+info',
      '+time',
      '+eval',
      '+evalsha',
    );
    await rig.redis.del(keys.params);
    const url = rig.server.url.replace('//', '//reader:pw@');
    const shown = await rig.run('doctor', { FLYBALL_REDIS_URL: url });
    expect(shown.code).toBe(1);
    expect(shown.stdout).not.toContain(':pw@');
    expect(shown.stdout).toMatch(/^fail {2}eviction +maxmemory-policy allkeys-lru can evict/m);
    expect(shown.stdout).toMatch(
      /^fail {2}rights +this user may not .*HSET.*\n +→ Use the daemon user/m,
    );
    expect(shown.stdout).toMatch(/^skip {2}scripts/m);
    expect(shown.stdout).toMatch(
      /^fail {2}limiter checkout +registered, but its params are missing/m,
    );
    await rig.redis.config('SET', 'maxmemory-policy', 'noeviction');
    await rig.redis.config('SET', 'maxmemory', '0');
  });

  test('Redis that does not answer is a finding with a mend, and policies are still read', async () => {
    const port = await freePort();
    const shown = await rig.run('doctor --json', {
      FLYBALL_REDIS_URL: `redis://u:secret@127.0.0.1:${port}`,
    });
    expect(shown.code).toBe(1);
    const json = parse(shown.stdout);
    expect(json.findings.find((f: { check: string }) => f.check === 'redis')).toMatchObject({
      status: 'fail',
      mend: expect.stringMatching(/^Start Redis there, or mend the address/),
    });
    // The rig names one file of policies.
    expect(json.findings.filter((f: { check: string }) => f.check === 'policies')).toEqual([
      { check: 'policies', status: 'ok', message: 'valid: checkout' },
    ]);
    expect(shown.stdout + shown.stderr).not.toContain('secret');
  });
});
