/** The whole demo: starts every piece, measures the knee, plays the story twice, reads the audit log, ends it all. Stage: demo. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { StoredEntry, VerifyReport } from '../actuate/audit.js';
import { createLog } from '../log.js';
import { awaitRedis, connect, type RedisClient } from '../redis/connect.js';
import { startEmbeddedRedis } from '../redis/embedded.js';
import type { LimiterAddress } from '../redis/keys.js';
import { claimFolder, releaseFolder } from './data-folder.js';
import { type CheckoutDatabase, openCheckoutDatabase } from './database.js';
import { createEnding, type Ending } from './ending.js';
import { awaitAdopted, forgetLimiter, LIMITER, readAudit, readLimiter } from './limiter-view.js';
import { createLiveView, type Screen } from './live.js';
import { type PlayOptions, type PlayRecord, playStory } from './play.js';
import { startPostgres } from './postgres.js';
import { createProcesses, type Processes } from './processes.js';
import { type Knee, measureKnee, type RampStep, rampPlan, runRamp } from './ramp.js';
import { openStage, type Stage } from './stage.js';
import { storyOf } from './story.js';

export interface DemoOptions {
  /** Length of each of the two plays. */
  seconds: number;
  seed: number;
  /** Its own folder: emptied at the start, kept at the end. */
  folder: string;
  /** A Redis of yours instead of a private one. */
  redisUrl: string | undefined;
  /** Leave the private Redis running. */
  keep: boolean;
  env: NodeJS.ProcessEnv;
  screen: Screen;
  say(line: string): void;
}

export interface DemoRun {
  knee: Knee;
  without: PlayRecord;
  guarded: PlayRecord;
  changes: StoredEntry[];
  verify: VerifyReport;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** On a Redis that others use too, the demo stays under its own prefix. */
export const SHARED_PREFIX = 'flyball-demo';

export async function runDemo(options: DemoOptions): Promise<DemoRun> {
  const ending = createEnding();
  try {
    return await Promise.race([perform(options, ending), ending.interrupted]);
  } finally {
    await ending.close();
  }
}

async function perform(options: DemoOptions, ending: Ending): Promise<DemoRun> {
  const { seconds, seed, say } = options;
  const pieces = await startPieces(options, ending);
  const { processes, stage, database, redis, address } = pieces;
  const guarded = <T>(work: Promise<T>) => Promise.race([work, processes.broken]);

  const plan = rampPlan(seconds);
  say(
    'Measuring the knee, the most that any fixed in-flight cap gives under overload, at full and at half database speed.',
  );
  const onStep = ({ slowdown, cap, goodPerSecond }: RampStep) => {
    const speed = slowdown === 1 ? 'full' : 'half';
    say(`  ${speed} speed, cap ${cap}: ${Math.round(goodPerSecond)} good/s`);
  };
  const measure = () => runRamp(stage, database, plan, seed, onStep);
  const knee = await guarded(measureKnee(measure, say));
  const phases = storyOf(seconds, knee.fullSpeed);

  const play = (guard: 'none' | 'flyball', title: string, before: PlayRecord | null) => {
    const view = createLiveView(options.screen, title, before?.seconds ?? null);
    const readNow: Partial<PlayOptions> =
      guard === 'flyball' ? { readLimiter: () => readLimiter(redis, address) } : {};
    const shared = { stage, database, phases, seed, onSecond: view.second };
    return guarded(playStory({ guard, ...shared, ...readNow }));
  };
  say('\nPlay 1 of 2: without Flyball.');
  const without = await play('none', 'without Flyball', null);
  say('\nPlay 2 of 2: with Flyball: two daemons, one leads; the same orders once more.');
  const daemons = startDaemons(processes, pieces.daemonEnv);
  await guarded(awaitAdopted(redis, address));
  const withFlyball = await play('flyball', 'with Flyball', without);
  for (const daemon of daemons) await daemon.stop();
  const { changes, verify } = await readAudit(redis, address);
  return { knee, without, guarded: withFlyball, changes, verify };
}

interface Pieces {
  processes: Processes;
  stage: Stage;
  database: CheckoutDatabase;
  redis: RedisClient;
  address: LimiterAddress;
  daemonEnv: Record<string, string>;
}

async function startPieces(options: DemoOptions, ending: Ending): Promise<Pieces> {
  const { folder, env, say } = options;
  const { logDir } = await claimFolder(folder);
  ending.add(() => releaseFolder(folder));
  say(`Starting PostgreSQL, Redis and the checkout service. Data and logs: ${folder}`);

  const own = options.redisUrl === undefined;
  const url = options.redisUrl ?? (await startPrivateRedis(options, ending));
  const prefix = own ? undefined : SHARED_PREFIX;
  const redis = connect({ url, name: 'demo', env });
  redis.on('error', () => {});
  ending.add(() => redis.disconnect());
  await awaitRedis(redis, { url, deadlineMs: 10_000 });
  const address = { name: LIMITER, prefix };
  await forgetLimiter(redis, address);

  const postgres = await startPostgres({ dir: folder });
  ending.add(() => postgres.stop());
  const database = await openCheckoutDatabase(postgres.url);
  ending.add(() => database.close());

  // A private Redis is found as anyone finds it: by the data folder.
  const { FLYBALL_REDIS_URL: _none, ...rest } = env;
  const processes = createProcesses(logDir, {
    ...rest,
    ...(own ? {} : { FLYBALL_REDIS_URL: url }),
    ...(prefix ? { FLYBALL_PREFIX: prefix } : {}),
    FLYBALL_DATA_DIR: folder,
  });
  ending.add(() => processes.close());
  const stage = await openStage(processes, postgres.url);
  return {
    processes,
    stage,
    database,
    redis,
    address,
    daemonEnv: { DATABASE_URL: postgres.url },
  };
}

async function startPrivateRedis({ folder, keep }: DemoOptions, ending: Ending): Promise<string> {
  const log = createLog({ level: 'silent' });
  const redis = await startEmbeddedRedis({ dataDir: folder, log });
  if (!keep) ending.add(() => redis.release());
  return redis.url;
}

function startDaemons(processes: Processes, env: Record<string, string>) {
  return ['daemon-a', 'daemon-b'].map((name) =>
    processes.start({
      name,
      module: 'cli/main.js',
      args: ['run', join(ROOT, 'policies', 'checkout.ts')],
      env: { ...env, FLYBALL_NAME: name, FLYBALL_HTTP_PORT: '0' },
    }),
  );
}
