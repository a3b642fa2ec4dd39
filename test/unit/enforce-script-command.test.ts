/** The ready-made buffer of a script call: byte for byte what ioredis would send, or left to ioredis. */
import fc from 'fast-check';
import { Command, Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import type { ScriptCall } from '../../src/redis/run-script.js';
import { scriptCommand } from '../../src/redis/script-command.js';

const redis = new Redis({ lazyConnect: true });
const prefixed = new Redis({ lazyConnect: true, keyPrefix: 'mine:' });
afterAll(() => {
  redis.disconnect();
  prefixed.disconnect();
});

const call = (keys: string[], args: (string | number)[]): ScriptCall => ({
  script: { name: 'any', sha: 'a'.repeat(40), lua: 'return 1' },
  keys,
  args,
});

test('the bytes are those of ioredis, for any ASCII keys and arguments', () => {
  const ascii = fc.string({ unit: 'binary-ascii', maxLength: 120 });
  const arg = fc.oneof(ascii, fc.integer(), fc.double());
  fc.assert(
    fc.property(
      fc.array(ascii, { minLength: 1, maxLength: 130 }),
      fc.array(arg, { maxLength: 130 }),
      (keys, args) => {
        const texts = args.map(String);
        const plain = new Command('evalsha', [
          'a'.repeat(40),
          String(keys.length),
          ...keys,
          ...texts,
        ]);
        const ours = scriptCommand(redis, call(keys, args))!.toWritable(null!);
        expect(ours.toString('latin1')).toBe(plain.toWritable(null!).toString());
      },
    ),
  );
});

test('text beyond ASCII, a key prefix and another client go the ordinary way', () => {
  expect(scriptCommand(redis, call(['flyball:{é}:b'], []))).toBeNull();
  expect(scriptCommand(redis, call(['k'], ['€']))).toBeNull();
  expect(scriptCommand(prefixed, call(['k'], []))).toBeNull();
  const other = { options: {} } as Redis;
  expect(scriptCommand(other, call(['k'], []))).toBeNull();
});
