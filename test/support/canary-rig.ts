/** A canary of `checkout` and who judges it, by hand: no time passes, and what both groups saw is written as it is wanted. */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { tryFirst } from '../../src/actuate/canary.js';
import { createLease } from '../../src/actuate/lease.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import type { Planner } from '../../src/actuate/verbs/plan.js';
import { type ManualClock, manualClock } from '../../src/clock.js';
import { type CanaryWatch, createCanaryWatch } from '../../src/daemon/canary-watch.js';
import { createLog } from '../../src/log.js';
import { type Canary, parseCanary } from '../../src/redis/canary.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { createMetrics } from '../../src/report/metrics.js';
import { mustRead } from './cli-run.js';
import { adoptBy, loadedPolicy } from './policies.js';
import { type RedisBench, redisBench } from './redis-bench.js';

export const address = { name: 'checkout' };
export const other = { name: 'checkout.canary' };
export const FOR_MS = 60_000;
const wish = { percent: 50, forMs: FOR_MS };
const limiter = { name: 'checkout', capacity: 200, inFlightMax: 24 };
/** The policy with this rate. */
export const at = (rate: number, more = {}) =>
  loadedPolicy({ limiter: { ...limiter, rate }, ...more });
export const [FIRST, A, B] = [at(100), at(140), at(60)] as const;
const log = createLog({ level: 'silent' });

/** What a test may take another of. */
interface Led {
  /** Who judges. */
  watch: CanaryWatch;
  /** How the file of who leads stands to the adopted policy. */
  file: 'pending' | 'same' | 'none';
}

/** Call it at the top of a test file: each test begins with `FIRST` adopted, and a leader. */
export function canaryRig() {
  let bench: RedisBench;
  let redis: Redis;
  let clock: ManualClock;
  const led = { file: 'pending' } as Led;
  redisBench(async (given) => {
    bench = given;
    redis = given.redis;
    await adoptBy(redis, 'autopilot', FIRST);
    clock = manualClock();
    led.file = 'pending';
    led.watch = await leader();
  });

  async function leader(client: Redis = redis): Promise<CanaryWatch> {
    const owner = 'd1:1:aa';
    const lease = createLease({ redis, address, owner, leaseMs: 60_000 });
    await redis.del(limiterKeys(address).lease);
    expect((await lease.acquire()).status).toBe('held');
    const of = { address, owner, lease, leaseMs: 60_000, clock, log };
    const fileState = () => ({ file: led.file, faults: [] });
    return createCanaryWatch({ ...of, metrics: createMetrics('d1'), redis: client, fileState });
  }

  const options = (kind: 'person' | 'autopilot' = 'autopilot', name = 'd1') => ({
    ...{ actor: { kind, name }, leaseMs: 60_000, nowMs: Date.now() },
  });
  const canary = async (): Promise<Canary> => parseCanary((await mustRead(redis, address)).canary)!;

  return Object.assign(led, {
    bench: () => bench,
    clock: () => clock,
    ...{ leader, options, canary },
    /** By a daemon, unless `by` is another. */
    tries: (loaded: LoadedPolicy, client = redis, by = options()) =>
      tryFirst(client, loaded, wish, by),
    newest: async () => (await readEntries(redis, address, { limit: 1 })).entries[0]!.body,
    says: (planner: Planner) =>
      applyVerb(redis, address, planner, {
        ...{ actor: 'kim', dryRun: false, nowMs: Date.now, approve: async () => true },
      }),

    /** Redis ms so long after the canary began. */
    async looksAfter(ms: number, of = led.watch): Promise<boolean> {
      clock.advance(1_000);
      const nowMs = (await canary()).since + ms;
      return of.act(await mustRead(redis, address), nowMs * 1000);
    },

    /** Answers of both groups in so many seconds from the moment on. */
    async answers(
      from: number,
      seconds: number,
      of: { canary?: number; others?: number } = {},
    ): Promise<void> {
      const start = Math.ceil(((await canary()).since + from) / 1000) + 2;
      for (let i = 0; i < seconds; i++) {
        for (const [one, failed = 0] of [
          [other, of.canary],
          [address, of.others],
        ] as const) {
          const counts = { off: 20, adm: 20, ok: 20 - failed, err: failed, n: 1 };
          await redis.hset(limiterKeys(one).telemetry(start + i), counts);
        }
      }
    },
  });
}
