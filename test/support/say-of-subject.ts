/** What a person says of one subject in a test, stored as the product stores it: by the one script, with an entry. */
import type { Redis } from 'ioredis';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { overrideSubject, type SubjectRule } from '../../src/redis/subject-override.js';
import { storedParams, testEntry } from './seed-params.js';

/** Without a word of its kind or end it is a limit until a person ends it; null takes it back. Throws when refused. */
export async function sayOfSubject(
  redis: Redis,
  keys: LimiterKeys,
  subject: string,
  rule: Partial<SubjectRule> | null,
  nowUs: number,
): Promise<void> {
  const { epoch, revision } = (await storedParams(redis, keys))!;
  const full: SubjectRule = { kind: 'limit', untilMs: -1, rate: null, capacity: null, ...rule };
  const reply = await overrideSubject(redis, {
    ...{ keys, subject, nowUs, expected: { epoch, revision } },
    override: rule && { ...full, subject, by: 'ada', why: 'tried', revision: revision + 1 },
    entry: await testEntry(redis, keys, epoch, revision + 1, 'said by a test'),
  });
  if (reply.status !== 'ok') throw new Error(`sayOfSubject: ${reply.reason}: ${reply.detail}`);
}
