/** `flyball policy history|show|diff|use`, every daemon dead: old versions, and what a person put in a file's place. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { adoptAtStart } from '../../src/daemon/adoption.js';
import { createLog } from '../../src/log.js';
import { parseByPerson } from '../../src/redis/by-person.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { mustRead } from '../support/cli-run.js';
import { adoptBy, loadedPolicy } from '../support/policies.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
let redis: Redis;
let run: RedisBench['run'];

redisBench((bench) => {
  ({ redis, run } = bench);
});

const adopted = async () => (await mustRead(redis, checkout)).policyHash;
const log = createLog({ level: 'silent', fd: 2 });
const restart = (loaded: ReturnType<typeof loadedPolicy>, reload: 'auto' | 'apply' = 'auto') =>
  adoptAtStart(
    { redis, prefix: 'flyball', owner: 'd2', leaseMs: 1000, nowMs: Date.now(), reload, log },
    loaded,
  );

const [a, b, c] = ['a', 'b', 'c'].map((owner) => loadedPolicy({ owner })) as [
  ReturnType<typeof loadedPolicy>,
  ReturnType<typeof loadedPolicy>,
  ReturnType<typeof loadedPolicy>,
];

test('history, show and diff tell of each version that was adopted', async () => {
  await adoptBy(redis, 'autopilot', { ...a, text: '// see postgres://kim:hunter2@db/x\n' });
  await adoptBy(redis, 'person', b);
  const shown = await run('policy history checkout');
  expect(shown.stdout.split('\n').map((line) => line.trim().split(/ {2,}/).slice(2))).toEqual([
    ['revision', 'by', 'file'],
    ['2', 'kim@host (unverified)', 'checkout.ts', 'adopted'],
    ['1', 'd1', 'checkout.ts', 'replaced by a person'],
    [],
  ]);
  const history = JSON.parse((await run('policy history checkout --json')).stdout);
  expect(history).toMatchObject({
    ...{ schema: 1, limiter: 'checkout', adopted: b.hash },
    versions: [
      { hash: b.hash, kind: 'person', adopted: true, replaced: false, kept: true },
      { hash: a.hash, kind: 'autopilot', adopted: false, replaced: true, revision: 1 },
    ],
  });
  const text = (await run(`policy show checkout ${a.hash.slice(0, 8)}`)).stdout;
  expect(text).toBe('// see postgres://***@db/x\n\n'.replace('\n\n', '\n'));
  const diff = await run(`policy diff checkout ${a.hash.slice(0, 8)}`);
  expect(diff.stdout).toMatch(/ → [0-9a-f]{12}\n {4}~ owner {2}a → b\n$/);
  expect(JSON.parse((await run(`policy diff checkout ${b.hash} ${a.hash} --json`)).stdout)).toEqual(
    {
      ...{ schema: 1, limiter: 'checkout', from: b.hash, to: a.hash },
      fields: [{ field: 'owner', kind: 'change', before: 'b', after: 'a' }],
    },
  );
});

test('use adopts an old version; a daemon that starts with the replaced file leaves it, a changed file is adopted', async () => {
  await adoptBy(redis, 'autopilot', a);
  await adoptBy(redis, 'autopilot', b);
  const dry = await run(`policy use checkout ${a.hash.slice(0, 8)} --dry-run`);
  expect(dry.stdout).toMatch(/~ owner {2}b → a/);
  const used = await run(`policy use checkout ${a.hash.slice(0, 8)} --yes --reason worse`);
  expect(used.stdout).toMatch(/^adopted {2}checkout {2}changed, revision 3/);
  expect(used.stderr).toMatch(/holds until its file changes again.*use checkout --release/);
  const { entries } = await readEntries(redis, checkout, { limit: 1 });
  expect(entries[0]!.body).toMatchObject({
    ...{ reason: 'policy_adopted', actor: { kind: 'person' }, detail: { why: 'worse' } },
  });
  await restart(b);
  expect(await adopted()).toBe(a.hash);
  // Of several in a row the file's is remembered; back to it ends the matter.
  await run(`policy use checkout ${a.hash.slice(0, 8)} --yes`);
  await restart(c);
  expect(await adopted()).toBe(c.hash);
  expect((await mustRead(redis, checkout)).byPerson).toBe('');
  expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
});

test('use --release goes back to what the files say, and so does the file when it says the same', async () => {
  await adoptBy(redis, 'autopilot', a);
  expect((await run('policy use checkout --release --yes')).stdout).toMatch(/as its files say/);
  await adoptBy(redis, 'person', b);
  await adoptBy(redis, 'person', c);
  const mark = async () => parseByPerson((await mustRead(redis, checkout)).byPerson).policy;
  expect(await mark()).toMatchObject({ is: c.hash, over: a.hash });
  expect(await run('policy use checkout --release --yes')).toMatchObject({ code: 0 });
  expect([await adopted(), await mark()]).toEqual([a.hash, undefined]);

  await adoptBy(redis, 'person', b);
  await restart(b);
  expect([await adopted(), await mark()]).toEqual([b.hash, undefined]);
  const { revision } = await mustRead(redis, checkout);
  await restart(b);
  expect((await mustRead(redis, checkout)).revision).toBe(revision);
  await restart(a);
  expect(await adopted()).toBe(a.hash);
});

test('reload apply: no changed file is adopted at a start, but a limiter without params begins', async () => {
  await restart(a, 'apply');
  expect(await adopted()).toBe(a.hash);
  await restart(b, 'apply');
  expect(await adopted()).toBe(a.hash);
});

test('C85: 1,000 adoptions keep 20 sources; what fell out ends by itself, and the adopted one never', async () => {
  const versions = Array.from({ length: 40 }, (_, i) => loadedPolicy({ owner: `o${i}` }));
  for (let i = 0; i < 1000; i++) await adoptBy(redis, 'autopilot', versions[(i * 7) % 40]!);
  expect(await redis.xlen(keys.sources)).toBe(20);
  const kept = (await redis.xrange(keys.sources, '-', '+')).map(([, fields]) => fields[1]);
  expect(new Set(kept).size).toBe(20);
  for (const { hash } of versions) {
    const ttl = await redis.pttl(keys.policyVersion(hash));
    expect([hash, ttl > 0]).toEqual([hash, !kept.includes(hash)]);
    expect(ttl).toBeLessThanOrEqual(8 * 86_400_000);
  }
  expect(kept.at(-1)).toBe(await adopted());
  // One policy, its 40 versions, params, audit, sources, the registry: nothing else was left behind.
  expect(await redis.dbsize()).toBe(45);
}, 240_000);

test('bad arguments are told with the mend', async () => {
  await adoptBy(redis, 'autopilot', a);
  const said = async (args: string) => (await run(`policy ${args}`)).stderr;
  expect(await said('use checkout --yes')).toMatch(/name a version, or give --release/);
  expect(await said(`use checkout ${a.hash} --release --yes`)).toMatch(/exclude each other/);
  expect(await said('use checkout zz --yes')).toMatch(/give 4 to 64 hexadecimal digits/);
  expect(await said('use checkout ffff0000 --yes')).toMatch(
    new RegExp(`"ffff0000" is no version .*Kept: ${a.hash.slice(0, 12)}.*policy history checkout`),
  );
  expect(await said(`use checkout ${a.hash}`)).toMatch(/no terminal to ask at/);
  expect(await said('histori checkout')).toMatch(/Did you mean history/);
  expect(await said('diff checkout')).toMatch(/See flyball policy diff --help/);
  expect(await said('history chekout')).toMatch(/Did you mean checkout/);
  await redis.del(keys.policy, keys.policyVersion(a.hash));
  expect(await said(`show checkout ${a.hash.slice(0, 6)}`)).toMatch(/not stored whole any more/);
});
