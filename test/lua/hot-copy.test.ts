/** The packed copy of the params that a take reads never disagrees with the fields that people read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { effectiveAtUs } from '../../src/redis/effective.js';
import { heartbeat, lease } from '../../src/redis/scripts.js';
import { changeParams, seedParams, storedParams } from '../support/seed-params.js';
import { S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const lib = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../lua/lib', `${name}.lua`), 'utf8');
/** Packs anew from the fields alone, as of the moment of the last write. */
const REPACK = `${['params', 'effective', 'ttl', 'view', 'hot'].map(lib).join('\n')}
return pack_hot(view_of(read_params(KEYS[1]), tonumber(ARGV[1])))`;
/** What a take reads of the copy, bit for bit. */
const UNPACK = `local call, params_key, now = redis.call, KEYS[1], tonumber(ARGV[1])
${lib('packed')}
local out = { rate, clock, subject_rate, subject_clock }
for i = 1, 4 do out[i] = string.format('%.17g', out[i]) end
return text and out`;

const write = fc.record({
  change: fc.oneof(
    fc.record({
      rate: fc.integer({ min: 0, max: 1000 }),
      capacity: fc.integer({ min: 1, max: 1000 }),
    }),
    fc.record({
      state: fc.constantFrom(
        'open' as const,
        'closed' as const,
        'half-open' as const,
        'recovering' as const,
      ),
    }),
    fc.record({
      subjectRate: fc.constantFrom(-1, 0.3, 5),
      subjectCapacity: fc.constantFrom(1, 10),
    }),
    fc.record({
      pinnedUntil: fc.constantFrom(0, -1),
      mode: fc.constantFrom('auto' as const, 'shadow' as const, 'off' as const),
    }),
    fc.record({
      reserveDefault: fc.constantFrom(0, 0.2),
      reserveSheddable: fc.constantFrom(0, 0.5),
    }),
  ),
  afterUs: fc.integer({ min: -1_000_000, max: 100_000_000 }),
  beat: fc.boolean(),
});

test('after every write and heartbeat the copy is, byte for byte, what the fields say', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 1, maxLength: 8 }), async (writes) => {
      const { keys } = fixture.limiter();
      let now = T0;
      await seedParams(
        fixture.redis,
        keys,
        { lostAfterMs: 20_000, lostOverMs: 5000, safeRate: 7 },
        { nowUs: now },
      );
      const granted = await lease(fixture.redis, {
        keys,
        op: 'acquire',
        owner: 'd',
        leaseMs: 600_000,
        nowUs: now,
      });
      if (granted.status !== 'held') throw new Error('not held');
      for (const { change, afterUs, beat } of writes) {
        now += afterUs;
        if (beat)
          await heartbeat(fixture.redis, {
            keys,
            owner: 'd',
            token: granted.token,
            leaseMs: 3000,
            nowUs: now,
          });
        else await changeParams(fixture.redis, keys, change, { nowUs: now });
        const params = (await storedParams(fixture.redis, keys))!;
        const packedAt = beat ? now : params.changedAt;
        const stored = await fixture.redis.hgetBuffer(keys.params, 'hot');
        const anew = await fixture.redis.callBuffer('EVAL', REPACK, 1, keys.params, packedAt);
        // A refused heartbeat leaves the copy of the write before it: then only what it says is compared.
        if (!beat || params.validUntil === Math.floor(now / 1000) + 3000)
          expect(stored).toEqual(anew);
        const copy = new Float64Array(new Uint8Array(stored!.subarray(0, 160)).buffer);
        const [, from, until] = copy as unknown as number[];
        for (const at of [
          from!,
          (from! + Math.min(until!, from! + 60 * S)) / 2,
          Math.min(until!, from! + 60 * S) - 1,
        ]) {
          const moment = Math.floor(at);
          if (moment < from! || moment >= until!) continue;
          const truth = effectiveAtUs(params, moment);
          const read = await fixture.redis.eval(UNPACK, 1, keys.params, moment);
          const { tokens, subjectRate, subjectTokens } = truth;
          expect((read as string[]).map(Number)).toEqual([
            ...[truth.rate, tokens, subjectRate, subjectTokens],
          ]);
        }
      }
    }),
    { numRuns: 60 },
  );
});
