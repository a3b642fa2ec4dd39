/** `flyball rollout` and what status shows of rollout and routes, on a real Redis with every daemon dead. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { adopt } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { rollout } from '../../src/actuate/verbs/rollout.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { mustRead } from '../support/cli-run.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
let redis: Redis;
let run: RedisBench['run'];

redisBench((bench) => {
  ({ redis, run } = bench);
});

const rolloutNow = async () => (await mustRead(redis, checkout)).rollout;

async function adopted(limiter: Partial<PolicyInput['limiter']>, mode: PolicyInput['mode']) {
  const policy = policySchema.parse({
    limiter: { ...checkout, rate: 100, capacity: 200, ...limiter },
    mode,
  });
  const outcome = await adopt(
    redis,
    { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) },
    { actor: { kind: 'autopilot', name: 'd1' }, leaseMs: 60_000, nowMs: Date.now() },
  );
  if (outcome.status === 'refused') throw new Error(outcome.sentence);
  return outcome;
}

test('by apply, then by a person, who stands until the file changes that field; --release gives it back', async () => {
  await adopted({ rollout: { percent: 1, subjects: ['user:42'] } }, 'recommend');
  expect(await rolloutNow()).toBe('{"percent":1,"subjects":["user:42"]}');
  const done = await run('rollout checkout --percent 10 --yes --json');
  expect(JSON.parse(done.stdout)).toMatchObject({
    schema: 1,
    verb: 'rollout',
    status: 'done',
    revision: 2,
    before: { rate: 100 },
    after: { rate: 100 },
    hold: null,
    rollout: { before: { percent: 1 }, after: { percent: 10, subjects: ['user:42'] } },
  });
  expect(
    (await adopted({ rate: 150, rollout: { percent: 1, subjects: ['user:42'] } }, 'recommend'))
      .status,
  ).toBe('changed');
  expect(await rolloutNow()).toMatch(/"percent":10/);
  const back = await run('rollout checkout --release --yes');
  expect(back.stdout).toMatch(
    /gave the rollout of checkout back to its policy: 10 % of the subjects/,
  );
  expect(await rolloutNow()).toBe('{"percent":1,"subjects":["user:42"]}');
  expect((await run('rollout checkout --release --yes')).stdout).toMatch(/is the policy's own/);

  await run('rollout checkout --done --yes');
  expect((await run('status checkout')).stdout).toMatch(/enforced for +all \(by a person, until/);
  await adopted({ rollout: { percent: 50 } }, 'recommend');
  expect(await rolloutNow()).toBe('{"percent":50}');
  const { entries } = await readEntries(redis, checkout, { limit: 10 });
  expect(entries.map(({ body }) => body.reason)).toEqual([
    'policy_adopted',
    'rollout',
    'rollout',
    'policy_adopted',
    'rollout',
    'params_created',
  ]);
  expect(entries[0]!.body.sentence).toMatch(/rollout all → 50 % of the subjects\.$/);
});

test('it asks, showing now → then and what to know; no writes nothing', async () => {
  await adopted({}, 'recommend');
  const no = await run('rollout checkout --percent 10 --subject user:42', 'n\n');
  expect(no.code).toBe(1);
  expect(no.stderr).toMatch(/enforced for +all +→ +10 % of the subjects, and 1 by name/);
  expect(no.stderr).toMatch(/So far it is enforced for all/);
  expect(await rolloutNow()).toBe('');
  const yes = await run('rollout checkout --percent 10', 'y\n');
  expect(yes.stdout).toMatch(/^done {2}revision 2 .*enforced for all → 10 % of the subjects/);
  expect(yes.stderr).toMatch(/flyball rollout checkout --done goes back/);
});

test('the way back that a step tells brings back the names, the drops and the kind of share', async () => {
  await adopted({ rollout: { percent: 10, subjects: ['user:42', 'it’s $(me)'] } }, 'recommend');
  const before = await rolloutNow();
  const told = async (args: string) =>
    /^flyball (rollout checkout .+) goes back;/m.exec((await run(`${args} --yes`)).stderr)![1]!;
  const all = await told('rollout checkout --percent 100');
  expect(all).toBe("rollout checkout --percent 10 --subject user:42 'it’s $(me)'");
  await run(['rollout', 'checkout', '--percent', '10', '--subject', 'user:42', 'it’s $(me)', '-y']);
  const { over: _, ...same } = JSON.parse(await rolloutNow());
  expect(same).toEqual(JSON.parse(before));
  const other = await told('rollout checkout --subject user:7 --by request');
  expect(other).toBe('rollout checkout --percent 10 --by subject --drop user:7');
  await run(`${other} --yes`);
  const { over: __, ...again } = JSON.parse(await rolloutNow());
  expect(again).toEqual(JSON.parse(before));
  const { stderr } = await run('rollout checkout --percent 5 --dry-run');
  expect(stderr + (await run('rollout checkout --percent 5 --dry-run')).stdout).toMatch(
    /The total rate counts and binds only whom it is enforced for/,
  );
});

test('another person’s step in between: they are asked again', async () => {
  await adopted({}, 'recommend');
  const shown: string[] = [];
  const outcome = await applyVerb(redis, checkout, rollout({ percent: 20 }), {
    actor: 'ada',
    dryRun: false,
    nowMs: Date.now,
    async approve(plan) {
      shown.push(plan.sentence);
      if (shown.length === 1) await run('rollout checkout --percent 5 --yes');
      return true;
    },
  });
  expect(outcome.status).toBe('done');
  expect(shown).toHaveLength(2);
  expect(shown[1]).toContain('5 % of the subjects → 20 % of the subjects');
});

test.each([
  ['rollout checkout --yes', /give --percent, --subject/],
  ['rollout checkout --percent ten --yes', /"ten" is not a number/],
  ['rollout checkout --percent 101 --yes', /0 … 100 with at most two decimals/],
  ['rollout checkout --subject user:1 --yes', /is enforced for all: say the share/],
  ['rollout checkout --done --percent 1 --yes', /or --done alone/],
  ['rollout checkout --percent 1 --by ip --yes', /Allowed choices are subject, request/],
  ['rollout chekout --percent 1 --yes', /Did you mean checkout/],
])('%s', async (args, why) => {
  await adopted({}, 'recommend');
  const { code, stderr } = await run(args);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(why);
  expect(await rolloutNow()).toBe('');
});

test('status shows for whom, on which routes, and counts what is denied apart from what would be', async () => {
  await adopted(
    {
      routes: ['POST /api/pay/**', '/pay'],
      rollout: { percent: 1, subjects: ['user:1', 'user:\u001b2'] },
    },
    'recommend',
  );
  const [seconds] = await redis.time();
  await redis.hset(keys.telemetry(Number(seconds) - 1), {
    [FIELD.offered]: 50,
    [FIELD.admitted]: 45,
    [FIELD.denied('rate')]: 5,
    [FIELD.wouldDeny('subject')]: 20,
  });
  const { stdout } = await run('status checkout');
  expect(stdout).toMatch(
    /enforced for +1 % of the subjects and user:1, user:\\x1b2; the others are in shadow/,
  );
  expect(stdout).toMatch(/routes +POST \/api\/pay\/\*\*, \/pay/);
  expect(stdout).toMatch(/denied by rate 1\/s; in shadow would be denied by subject 4\/s/);
  const [view] = JSON.parse((await run('status --json')).stdout).limiters;
  expect(view).toMatchObject({
    binds: 'rate',
    rollout: { percent: 1, by: 'subject', setBy: 'policy', subjects: ['user:1', 'user:\u001b2'] },
    routes: ['POST /api/pay/**', '/pay'],
    traffic: { deniedPerSecond: { rate: 1 }, wouldDenyPerSecond: { subject: 4 } },
  });
  expect((await run('status')).stdout).toMatch(/rollout 1 %/);
});
