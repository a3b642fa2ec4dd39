/** `flyball plan` and `apply` on a real Redis, every daemon dead: who owns what, drift, saved plans, exit codes. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from '../support/cli-run.js';
import { adoptBy, loadedPolicy } from '../support/policies.js';
import { redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
let redis: Redis;
let reach: NodeJS.ProcessEnv;
let folder: string;

redisBench((bench) => {
  redis = bench.redis;
  reach = bench.env;
  folder = mkdtempSync(join(tmpdir(), 'flyball-plan-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const env = () => ({
  ...reach,
  // A busy machine takes a while to start a process for each file.
  FLYBALL_POLICY_DEADLINE_MS: '120000',
});
const run = (args: string, typed?: string) =>
  cli(
    args.split(' ').map((arg) => arg.replace('DIR', folder)),
    { env: env(), ...(typed === undefined ? {} : { typed }) },
  );
const json = async (args: string) => JSON.parse((await run(args)).stdout);

function policy(more = '', name = 'checkout', max = 400) {
  writeFileSync(
    join(folder, `${name}.ts`),
    `import { definePolicy, env, postgres } from 'flyball';
export default definePolicy({
  limiter: { name: '${name}', rate: 100, capacity: 200, inFlightMax: 24 },
  bounds: { rate: { min: 20, max: ${max} }, inFlight: { min: 2, max: 64 } },
  ${more}
});
`,
  );
}

test('plan of nothing adopted creates; apply adopts; then nothing is to be done', async () => {
  policy();
  const first = await run('plan DIR --detailed-exitcode');
  expect(first.code).toBe(2);
  expect(first.stdout).toMatch(/^\+ checkout .*checkout\.ts {2}new [0-9a-f]{12}/);
  expect(first.stdout).toMatch(/Plan: 1 to create, 0 to change\./);
  expect(await redis.dbsize()).toBe(0);

  const applied = await run('apply DIR --yes --reason first');
  expect(applied).toMatchObject({ code: 0, stdout: expect.stringMatching(/^adopted {2}checkout/) });
  const { entries } = await readEntries(redis, checkout);
  expect(entries[0]!.body).toMatchObject({
    actor: { kind: 'person', name: expect.stringMatching(/@.*\(unverified\)$/) },
    reason: 'params_created',
    detail: { why: 'first' },
  });
  expect(entries[0]!.body.sentence).toMatch(/Reason: first$/);
  expect(await redis.hgetall('flyball:limiters')).toEqual({ checkout: '' });

  const after = await run('plan DIR --detailed-exitcode');
  expect(after).toMatchObject({ code: 0 });
  expect(after.stdout).toMatch(
    / {2}checkout .* unchanged\nPlan: 0 to create, 0 to change, 1 unchanged/,
  );
  expect(await run('apply DIR --yes')).toMatchObject({ code: 0, stdout: '' });
  expect((await mustRead(redis, checkout)).revision).toBe(1);
});

test('a change is told field by field, with who owns what; limiters without a file are kept', async () => {
  await adoptBy(redis, 'autopilot', loadedPolicy({ owner: 'pay' }));
  await adoptBy(
    redis,
    'autopilot',
    loadedPolicy({ limiter: { name: 'search', rate: 5, capacity: 5 }, bounds: undefined }),
  );
  await run('pin checkout --in-flight 8 --hold --yes');
  policy("onMissing: 'glide', mode: 'auto', control: { law: 'aimd' },", 'checkout', 300);
  const { stdout } = await run('plan DIR --no-color');
  expect(stdout.split('\n').map((line) => line.replace(/\S+@\S+ \(unverified\)/, 'WHO'))).toEqual([
    expect.stringMatching(
      /^~ checkout {2}\S+checkout\.ts {2}[0-9a-f]{12} → [0-9a-f]{12}, revision 2$/,
    ),
    '    ~ control.law  fixed → aimd',
    '    + control.down  0.7',
    '    ~ bounds.rate.max  400 → 300',
    '    ~ onMissing  hold → glide',
    '    ~ mode  recommend → auto',
    '    - owner  pay',
    '      mode          recommend → auto  policy',
    '      rate          100/s  WHO',
    '      capacity      200  WHO',
    '      in-flight cap 8  WHO',
    expect.stringMatching(/^ {4}! mode recommend → auto: the law moves the numbers/),
    expect.stringMatching(/^ {2}search {2}no file {2}[0-9a-f]{12}, revision 1 {2}kept$/),
    'Plan: 0 to create, 1 to change, 1 without a file (kept).',
    '',
  ]);
});

test('a saved plan is readable, without secrets, and applied as it was though its file is gone', async () => {
  writeFileSync(
    join(folder, 'checkout.ts'),
    `import { definePolicy, env, postgres } from 'flyball';
export default definePolicy({
  limiter: { name: 'checkout', rate: 100, capacity: 200 },
  signals: { dbWait: postgres.waiting({ url: env('DATABASE_URL') }) },
});
`,
  );
  const saved = await run('plan DIR --out DIR/plan.json');
  expect(saved.stderr).toMatch(/flyball apply .*plan\.json adopts exactly this, or refuses/);
  const text = readFileSync(join(folder, 'plan.json'), 'utf8');
  expect(statSync(join(folder, 'plan.json')).mode & 0o777).toBe(0o600);
  expect(text).toContain('"env": "DATABASE_URL"');
  const file = JSON.parse(text);
  expect(file).toMatchObject({
    flyball: 'plan',
    version: 1,
    limiters: [{ limiter: 'checkout', action: 'create', stood: null }],
  });
  expect(file.limiters[0].source).toMatch(/^[0-9a-f]{64}$/);
  rmSync(join(folder, 'checkout.ts'));
  expect(await run('apply DIR/plan.json --yes')).toMatchObject({ code: 0 });
  expect((await mustRead(redis, checkout)).policyHash).toBe(file.limiters[0].hash);
  expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
  // Once more: it is adopted already. But not after a person has moved what it stands on.
  expect(await run('apply DIR/plan.json --yes')).toMatchObject({ code: 0 });
  await redis.hset(keys.params, 'policyHash', 'f'.repeat(64));
  const moved = await run('apply DIR/plan.json --yes --json');
  expect(moved.code).toBe(1);
  expect(JSON.parse(moved.stdout).error).toMatchObject({
    code: 'FLYBALL_E_PLAN_MOVED',
    message: expect.stringMatching(/checkout \(it has params by now\).*Nothing was adopted/),
  });
});

test('dry run, no terminal, a no at the terminal, NO_COLOR: nothing is written', async () => {
  policy();
  const dry = await run('apply DIR --dry-run');
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\+ checkout/) });
  const dryJson = await json('apply DIR --dry-run --json');
  expect(dryJson).toMatchObject({
    ...{ schema: 1, status: 'dry_run', limiters: [{ limiter: 'checkout', status: 'dry_run' }] },
  });
  const noTerminal = await run('apply DIR');
  expect(noTerminal).toMatchObject({ code: 64, stderr: expect.stringMatching(/Add --yes/) });
  const no = await run('apply DIR', 'n\n');
  expect(no).toMatchObject({ code: 1, stderr: expect.stringMatching(/Nothing was changed/) });
  expect(await redis.dbsize()).toBe(0);
  expect(await run('apply DIR', 'y\n')).toMatchObject({ code: 0 });
});

test('bad arguments and files are told with the mend', async () => {
  policy("mode: 'autoo',");
  expect(await run('plan DIR')).toMatchObject({ code: 78 });
  expect(await run('plan DIR --detailed-exitcode')).toMatchObject({
    ...{ code: 1, stderr: expect.stringMatching(/mode is "autoo"/) },
  });
  expect(await run('plan --detailed-exitcodes')).toMatchObject({
    ...{ code: 64, stderr: expect.stringMatching(/Did you mean --detailed-exitcode/) },
  });
  policy();
  expect(await run('plan DIR --out DIR/none/plan.json')).toMatchObject({ code: 64 });
  await run('plan DIR --out DIR/plan.json');
  const whole = readFileSync(join(folder, 'plan.json'), 'utf8');
  for (const [text, why] of [
    [whole.slice(0, 200), /is not JSON: it may be half-written/],
    ['{}', /is not a plan of flyball/],
    [whole.replace('"version": 1', '"version": 9'), /is of version 9/],
    [whole.replace('"rate": 100', '"rate": 90'), /was changed: the policy of checkout/],
    [whole.replace('"rate": 100', '"rate": "x"'), /holds a policy with a fault: limiter\.rate/],
  ] as const) {
    writeFileSync(join(folder, 'plan.json'), text);
    const got = await run('apply DIR/plan.json --yes');
    expect(got).toMatchObject({ code: 64, stderr: expect.stringMatching(why) });
    expect(got.stderr).toMatch(/FLYBALL_E_CLI_PLAN_FILE.*Make it anew/s);
  }
  expect(await run('apply DIR/none.json --yes')).toMatchObject({ code: 64 });
  expect(await run('apply DIR/plan.json more.ts --yes')).toMatchObject({ code: 64 });
  await redis.hset('flyball:limiters', 'checkout', 'pay');
  const group = await run('apply DIR --yes');
  expect(group).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/refused: limiter\.group/),
  });
});
