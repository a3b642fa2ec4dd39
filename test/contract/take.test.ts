/** The golden raw calls, replayed as a client in another language would send them. */
import { expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import * as sources from '../../src/redis/scripts.gen.js';
import { useRedis } from '../lua/fixture.js';
import { goldenParts } from './golden-parts.js';

const parts = goldenParts();
const scripts = new Map(Object.values(sources).map(({ name, lua }) => [name, lua]));
const fixture = useRedis();

test.each(parts.map((part, index) => [index, part] as const))(
  'part %i of the golden calls',
  async (_index, part) => {
    await fixture.redis.flushall();
    if (part.params !== null) {
      const { hot = '', ...fields } = part.params;
      await fixture.redis.hset(limiterKeys({ name: 'golden' }).params, {
        ...fields,
        hot: Buffer.from(hot, 'base64'),
      });
    }
    for (const { what, script, keys, args, reply } of part.steps) {
      const answer = await fixture.redis.eval(scripts.get(script)!, keys.length, ...keys, ...args);
      expect(answer, what).toEqual(reply);
    }
  },
);
