/** The states of Redis in which the commands of the guides are run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { MAIN, seedLimiter } from './cli-run.js';
import { until } from './daemon.js';
import { type Step, storeLog } from './episode-entries.js';
import { seen } from './guide-run.js';
import { adoptBy, loadedPolicy } from './policies.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);

/** A night, told at 06:40: the database waits at 02:14, the autopilot cuts and comes back; at six somebody pins a rate for a test. */
const NIGHT: Step[] = [
  {
    s: 0,
    to: { rate: 280 },
    reason: 'law_cut',
    sentence: 'dbWait 38 is 7.6 × the setpoint 5; rate 400 → 280/s.',
  },
  {
    s: 20,
    to: { rate: 118, inFlightMax: 12 },
    reason: 'law_cut',
    sentence: 'dbWait 31 is 6.2 × the setpoint 5; rate 280 → 118/s, cap 44 → 12.',
  },
  {
    s: 400,
    to: { rate: 240, inFlightMax: 26 },
    reason: 'law_raise',
    sentence: 'dbWait 2 is 0.4 × the setpoint 5; rate 118 → 240/s, cap 12 → 26.',
  },
  {
    s: 900,
    to: { rate: 394, inFlightMax: 44 },
    reason: 'law_raise',
    sentence: 'dbWait 2 is 0.4 × the setpoint 5; rate 240 → 394/s, cap 26 → 44.',
  },
  {
    s: 13_560,
    to: { rate: 30 },
    reason: 'pin',
    by: 'kim@build (unverified)',
    sentence:
      'kim@build (unverified) pinned checkout: rate 394 → 30/s, until a person ends it. Reason: load test of the new pool',
    detail: { until: -1, why: 'load test of the new pool' },
  },
];
const FIRST = 120;

async function traffic(redis: Redis, fields: Record<string, number>): Promise<void> {
  const [seconds] = await redis.time();
  for (let i = -20; i <= 6; i++) await redis.hset(keys.telemetry(Number(seconds) - i), fields);
}

const REPORT = {
  [FIELD.process('p1')]: 1,
  [FIELD.reportingProcess('p1')]: 1,
  [FIELD.flushes]: 1,
  [FIELD.inFlight]: 5,
};

/** Its database is named by a variable that is not set here. */
const WATCHED = `import { definePolicy, env, postgres, telemetry } from 'flyball';

export default definePolicy({
  limiter: { name: 'checkout', rate: 100, capacity: 200 },
  signals: {
    p95: telemetry.latency('p95'),
    dbWait: postgres.waiting({ url: env('ORDERS_DB') }),
  },
  objective: { p95: { below: '250ms' }, dbWait: { below: 5 } },
  bounds: { rate: { min: 20, max: 400 } },
  mode: 'recommend',
});
`;
const OF_A_DAEMON = {
  FLYBALL_NAME: 'laptop',
  FLYBALL_HTTP_PORT: '0',
  FLYBALL_POLICY_DEADLINE_MS: '60000',
};
/** What the scene has begun. */
const ends: (() => Promise<void>)[] = [];

/** Ends what the scene before has begun. */
export async function endScenes(): Promise<void> {
  for (const end of ends.splice(0)) await end();
}

export type Scene = (redis: Redis, env: NodeJS.ProcessEnv) => Promise<void>;

const run = async (args: string, env: NodeJS.ProcessEnv) => {
  const { code, text } = await seen(args.split(' '), env);
  if (code !== 0) throw new Error(`${args}: ${text}`);
};

export const SCENES: Readonly<Record<string, Scene>> = {
  async plain(redis) {
    await redis.flushall();
    await seedLimiter(redis, checkout);
  },
  async night(redis) {
    await redis.flushall();
    await seedLimiter(redis, checkout, {
      ...{ rate: 30, capacity: 400, inFlightMax: 44, minCapacity: 1, maxCapacity: 1600 },
    });
    const last = FIRST + NIGHT.length - 1;
    await storeLog(redis, checkout, NIGHT, 2400);
    await redis.hset(keys.params, {
      revision: last,
      pinnedUntil: -1,
      heldBy: 'kim@build (unverified)',
    });
    await traffic(redis, {
      ...REPORT,
      [FIELD.offered]: 140,
      [FIELD.admitted]: 30,
      [FIELD.denied('rate')]: 110,
    });
  },
  async recommend(redis) {
    await SCENES.plain!(redis, {});
    await redis.hset(keys.params, 'mode', 'recommend');
  },
  async recommending(redis) {
    await redis.flushall();
    await adoptBy(redis, 'autopilot', loadedPolicy({ control: { law: 'step' } }));
  },
  async watched(redis, env) {
    await redis.flushall();
    // Where the commands of the guide stand, and nowhere else when it is taken away.
    const cwd = process.cwd();
    const folder = join(cwd, 'policies');
    mkdirSync(folder);
    writeFileSync(join(folder, 'checkout.ts'), WATCHED);
    const daemon = spawn(process.execPath, [MAIN, 'run', 'policies/'], {
      cwd,
      env: { ...process.env, ...env, ...OF_A_DAEMON },
      stdio: 'ignore',
    });
    const gone = once(daemon, 'exit');
    ends.push(async () => {
      daemon.kill('SIGKILL');
      await gone;
      rmSync(folder, { recursive: true });
    });
    await until('it has asked for its signals', async () => {
      const { sample } = JSON.parse((await redis.get(keys.status)) ?? '{}');
      return sample !== undefined;
    });
  },
  async unmanaged(redis) {
    await SCENES.plain!(redis, {});
    await redis.del(keys.params);
  },
  async tripped(redis, env) {
    await SCENES.plain!(redis, env);
    await run('trip checkout --hold --yes', env);
  },
  async blocked(redis, env) {
    await SCENES.plain!(redis, env);
    await run('subject checkout user:42 --block --for 2h --yes', env);
  },
  async frozen(redis, env) {
    await SCENES.plain!(redis, env);
    await run('freeze checkout --for 2h --yes', env);
  },
  async evicting(redis, env) {
    await SCENES.plain!(redis, env);
    await redis.config('SET', 'maxmemory', '500mb');
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  },
  async edited(redis, env) {
    await SCENES.plain!(redis, env);
    await run('pin checkout --rate 80 --yes', env);
    await run('release checkout --yes', env);
    const [, [id = '', fields = []] = []] = await redis.xrange(keys.audit, '-', '+');
    const rows = await redis.xrange(keys.audit, '-', '+');
    await redis.del(keys.audit);
    for (const [each, values] of rows) {
      const at = values.indexOf('body') + 1;
      if (each === id) values[at] = values[at]!.replace('80', '81');
      await redis.xadd(keys.audit, each, ...values);
    }
    void fields;
  },
};
