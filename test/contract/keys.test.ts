/** C33: subjects become key parts injectively, on the limiter's slot, in at most 200 bytes, the same in every language. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeSubject, type LimiterAddress, limiterKeys } from '../../src/redis/keys.js';
import { useRedis } from '../lua/fixture.js';

const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'keys.json'), 'utf8')) as {
  limiters: { address: LimiterAddress; keys: Record<string, string> }[];
  subjects: { subject: string; bucket: string }[];
};
const fixture = useRedis(['--cluster-enabled', 'yes']);

test('C33: the golden file of keys is reproduced', () => {
  for (const { address, keys } of golden.limiters) {
    const made = limiterKeys(address);
    expect({
      ...made,
      telemetry: made.telemetry(1_700_000_000),
      top: made.top(28_333_333),
      policyVersion: made.policyVersion('abc'),
    }).toMatchObject(keys);
  }
  const { subjectBucket } = limiterKeys({ name: 'checkout' });
  for (const { subject, bucket } of golden.subjects) expect(subjectBucket(subject)).toBe(bucket);
  expect(new Set(golden.subjects.map((each) => each.bucket)).size).toBe(golden.subjects.length);
});

test('C33: any two subjects have two keys, short, without braces or control characters', () => {
  const subject = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('%', '4', '1', 'A', ':', '#', '{', 'É') }),
  );
  fc.assert(
    fc.property(subject, subject, (a, b) => {
      expect(encodeSubject(a) === encodeSubject(b)).toBe(Buffer.from(a).equals(Buffer.from(b)));
      for (const each of [a, b]) expect(encodeSubject(each)).toMatch(/^[A-Za-z0-9._:@%#-]{0,64}$/);
    }),
    { numRuns: 2000 },
  );
});

test('C33: all keys of a limiter lie on one slot, by the server itself', async () => {
  for (const address of [{ name: 'checkout' }, { name: 'checkout', group: 'payments' }]) {
    const keys = limiterKeys(address);
    const names = Object.values(keys).filter(
      (each): each is string => typeof each === 'string' && each.includes('{'),
    );
    const subjects = golden.subjects.flatMap(({ subject }) => [
      keys.subjectBucket(subject),
      keys.shadowSubjectBucket(subject),
    ]);
    const slots = new Set<unknown>();
    for (const key of [...names, ...subjects, keys.telemetry(1), keys.policyVersion('x')]) {
      expect(Buffer.byteLength(key)).toBeLessThanOrEqual(200);
      slots.add(await fixture.redis.cluster('KEYSLOT', key));
    }
    expect(slots.size).toBe(1);
  }
});
