/** The Functions library: it loads, replaces an older one, and answers the golden calls as the scripts do. */
import { expect, test } from 'vitest';
import {
  FUNCTION_NAMES,
  functionsLibrary,
  LIBRARY_NAME,
  loadFunctions,
} from '../../src/redis/functions.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { useRedis } from '../lua/fixture.js';
import { cli } from '../support/cli-run.js';
import { goldenParts } from './golden-parts.js';

const parts = goldenParts();
const fixture = useRedis();

test.each(parts.map((part, index) => [index, part] as const))(
  'part %i of the golden calls, through FCALL',
  async (_index, part) => {
    const { redis } = fixture;
    await redis.flushall();
    await loadFunctions(redis);
    if (part.params !== null) {
      const { hot = '', ...fields } = part.params;
      await redis.hset(limiterKeys({ name: 'golden' }).params, {
        ...fields,
        hot: Buffer.from(hot, 'base64'),
      });
    }
    for (const { what, script, keys, args, reply } of part.steps) {
      const call = ['FCALL', `flyball_${script}`, keys.length, ...keys, ...args] as const;
      expect(await redis.call(...call), what).toEqual(reply);
    }
  },
);

test('every function has golden calls', () => {
  const called = parts.flatMap(({ steps }) => steps.map(({ script }) => `flyball_${script}`));
  expect([...new Set(called)].sort()).toEqual([...FUNCTION_NAMES].sort());
});

test('a newer library takes the place of an older one, and loading twice changes nothing', async () => {
  const { redis } = fixture;
  await redis.call('FUNCTION', 'FLUSH');
  const old = functionsLibrary().replace(LIBRARY_NAME, 'flyball_0_0_1');
  await redis.call('FUNCTION', 'LOAD', old);
  expect(await loadFunctions(redis)).toEqual(['flyball_0_0_1']);
  expect(await loadFunctions(redis)).toEqual([]);
  const listed = (await redis.call('FUNCTION', 'LIST')) as unknown[][];
  expect(listed.map((library) => library[1])).toEqual([LIBRARY_NAME]);
});

test('only functions that a service may call: none that changes what is in force', () => {
  const registered = [...functionsLibrary().matchAll(/function_name = '([^']+)'/g)];
  expect(registered.map(([, name]) => name)).toEqual(FUNCTION_NAMES);
  expect(FUNCTION_NAMES).toContain('flyball_take');
  for (const name of ['actuate', 'heartbeat', 'lease', 'note']) {
    expect(FUNCTION_NAMES).not.toContain(`flyball_${name}`);
  }
});

test('`flyball functions dump` prints the source, `load` loads it', async () => {
  const dump = await cli(['functions', 'dump']);
  expect(dump.stdout.trimEnd()).toBe(functionsLibrary().trimEnd());
  await fixture.redis.call('FUNCTION', 'FLUSH');
  const load = await cli(['functions', 'load', '--redis', fixture.server.url, '--json']);
  expect(JSON.parse(load.stdout)).toMatchObject({ library: LIBRARY_NAME, replaced: [] });
  const keys = [limiterKeys({ name: 'any' }).params];
  expect(await fixture.redis.call('FCALL_RO', 'flyball_effective', 1, ...keys, '')).toHaveLength(1);
});
