/** The shipped service user against every command that writes, and any limiter, group and subject: what is not its own stays shut. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fleetKeys, type LimiterAddress, limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const USER = 'flyball-service';
const FILE = new URL('../../deploy/redis/users.acl', import.meta.url);
let server: TestRedis;
let admin: Redis;
/** Commands that write, with the number of arguments that each takes at least. */
let writers: { name: string; size: number }[];
let rules: string[];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
  const line = readFileSync(FILE, 'utf8')
    .split('\n')
    .find((text) => text.startsWith(`user ${USER} `))!
    .replace(/#@[A-Z0-9_]+@/, '>password');
  // Spaces within a selector's brackets part no rules.
  rules = line.slice(`user ${USER} `.length).split(/ (?![^(]*\))/);
  expect(await admin.call('ACL', 'SETUSER', USER, ...rules)).toBe('OK');
  const names = (await admin.call('COMMAND', 'LIST', 'FILTERBY', 'ACLCAT', 'write')) as string[];
  const infos = (await admin.call('COMMAND', 'INFO', ...names)) as [string, number][];
  writers = infos.filter(Boolean).map(([name, arity]) => ({ name, size: Math.abs(arity) - 1 }));
  expect(writers.length).toBeGreaterThan(80);
});
afterAll(() => server.stop());

/** What the server would say to this user; nothing is run. */
async function dryRun(calls: string[][], user = USER): Promise<string[]> {
  const pipeline = admin.pipeline();
  for (const call of calls) pipeline.call('ACL', 'DRYRUN', user, ...call);
  return ((await pipeline.exec()) ?? []).map(([error, reply]) => error?.message ?? String(reply));
}

/** Words that keys are made of are the names most likely to be mistaken for a key. */
const word = fc.oneof(
  fc.constantFrom(
    'b',
    's',
    't',
    'f',
    'fs',
    'wl',
    'r',
    'x',
    'o',
    'ts',
    'top',
    'params',
    'policy',
    'audit',
    'b.b',
    's-b',
  ),
  fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/),
);
const address: fc.Arbitrary<LimiterAddress> = fc
  .tuple(word, fc.option(word, { nil: undefined }))
  .map(([name, group]) => ({ name, group }));
const hash = fc.oneof(fc.constantFrom('b', 'b:b', 't:1'), fc.stringMatching(/^[0-9a-f]{64}$/));

test('a service cannot write params, audit, lease, state, status, policy, by any command, name or group', async () => {
  await fc.assert(
    fc.asyncProperty(address, hash, async (of, version) => {
      const keys = limiterKeys(of);
      const shut = [
        ...[keys.params, keys.audit, keys.lease, keys.state, keys.status, keys.history],
        ...[
          keys.policy,
          keys.policyVersion(version),
          keys.overrides,
          keys.tail,
          fleetKeys().limiters,
          fleetKeys().daemons,
        ],
      ];
      const calls = shut.flatMap((key) =>
        // The key in every place: as target, as source, as member.
        writers.map(({ name, size }) => [name, ...Array<string>(Math.max(size, 1)).fill(key)]),
      );
      const replies = await dryRun(calls);
      expect(calls.filter((_, i) => replies[i] === 'OK')).toEqual([]);
    }),
    { numRuns: 12 },
  );
});

test('the question is a real one: where a service may write, the same commands are allowed', async () => {
  const { inFlight } = limiterKeys({ name: 'a' });
  const calls = writers.map(({ name, size }) => [name, ...Array<string>(size).fill(inFlight)]);
  const replies = await dryRun(calls);
  const allowed = calls.filter((_, i) => replies[i] === 'OK').map(([name]) => name!);
  expect(allowed.sort()).toEqual(['hdel', 'hset', 'pexpire']);
});

test('whatever a subject says, its buckets are its own, and can be written', async () => {
  await fc.assert(
    fc.asyncProperty(
      address,
      fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }),
      async (of, text) => {
        const keys = limiterKeys(of);
        for (const subject of ['params', 'x}:params', `}:b:${keys.params}`, text]) {
          const own = [
            keys.subjectBucket(subject),
            keys.shadowSubjectBucket(subject),
            keys.taken('wc', subject, false),
          ];
          const replies = await dryRun(own.map((key) => ['set', key, '1']));
          expect(replies).toEqual(own.map(() => 'OK'));
          for (const key of own) {
            expect(key.startsWith(keys.params.slice(0, -'params'.length))).toBe(true);
            expect(key.slice(key.indexOf('}') + 1)).not.toMatch(/[{}]/);
          }
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('a service needs no more than a Cluster or Sentinel client asks for', async () => {
  const may = [
    ['cluster', 'slots'],
    ['cluster', 'info'],
    ['asking'],
    ['readonly'],
    ['client', 'setname', 'x'],
  ];
  expect(await dryRun(may)).toEqual(may.map(() => 'OK'));
  const mayNot = [
    ['cluster', 'nodes'],
    ['cluster', 'failover'],
    ['cluster', 'reset'],
    ['cluster', 'setslot', '1', 'stable'],
    ['client', 'list'],
    ['sort', 'a', 'store', 'b'],
    ['migrate', 'h', '1', '', '0', '1'],
    ['restore', 'a', '0', 'x'],
    ['function', 'load', 'x'],
    ['acl', 'whoami'],
    ['failover'],
    ['wait', '1', '1'],
  ];
  for (const [i, reply] of (await dryRun(mayNot)).entries()) {
    expect([mayNot[i], reply]).toEqual([mayNot[i], expect.stringContaining('no permissions')]);
  }
});

test('narrowed to one limiter, a service has its own keys and nobody else’s', async () => {
  const narrow = rules.map((rule) => rule.replaceAll('flyball:*{*}', 'flyball:{checkout}'));
  expect(await admin.call('ACL', 'SETUSER', 'narrow', ...narrow)).toBe('OK');
  const callsOn = (of: LimiterAddress) => {
    const keys = limiterKeys(of);
    return [
      ['set', keys.bucket, '1'],
      ['set', keys.subjectBucket('}{checkout}:b:x'), '1'],
      ['hset', keys.inFlight, 'a', '1'],
      ['hgetall', keys.params],
    ];
  };
  const own = callsOn({ name: 'checkout' });
  expect(await dryRun(own, 'narrow')).toEqual(own.map(() => 'OK'));
  for (const of of [
    { name: 'orders' },
    { name: 'checkout', group: 'g' },
    { name: 'x', group: 'checkout' },
  ]) {
    for (const [i, reply] of (await dryRun(callsOn(of), 'narrow')).entries())
      expect([callsOn(of)[i], reply]).toEqual([
        callsOn(of)[i],
        expect.stringContaining('no permissions'),
      ]);
  }
});
