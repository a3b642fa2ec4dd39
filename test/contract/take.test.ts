/** The raw calls of take.json, replayed as a client in another language would send them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import {
  effectiveScript,
  inflightScript,
  outcomeScript,
  subjectsScript,
  takeScript,
} from '../../src/redis/scripts.gen.js';
import { useRedis } from '../lua/fixture.js';

interface Part {
  params: ({ hot: string } & Record<string, string>) | null;
  steps: { what: string; script: string; keys: string[]; args: string[]; reply: unknown }[];
}
const parts = JSON.parse(readFileSync(join(import.meta.dirname, 'take.json'), 'utf8')) as Part[];
const scripts = new Map(
  [takeScript, subjectsScript, outcomeScript, inflightScript, effectiveScript].map((each) => [
    each.name,
    each.lua,
  ]),
);
const fixture = useRedis();

test.each(parts.map((part, index) => [index, part] as const))(
  'part %i of the golden calls',
  async (_index, part) => {
    await fixture.redis.flushall();
    if (part.params !== null) {
      const { hot, ...fields } = part.params;
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
