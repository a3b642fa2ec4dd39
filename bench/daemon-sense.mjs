/** A process that only senses and estimates, as a daemon does: `node daemon-sense.mjs <port> <limiters> <ticks>`; one JSON line. */
import { Redis } from 'ioredis';
import { systemClock } from '../dist/clock.js';
import { createLoop } from '../dist/daemon/loop.js';
import { createEstimateState, estimate } from '../dist/estimate/estimate.js';
import { createLog } from '../dist/log.js';
import { gatherWrites } from '../dist/redis/gather-writes.js';
import { createSampler } from '../dist/sense/sampler.js';
import { createSourcePool } from '../dist/sense/source-pool.js';
import { limiterName, policyOf } from './daemon-load.mjs';

const [port, limiters, ticks] = process.argv.slice(2).map(Number);
const TICK_MS = 1000;
/** What a look is compiled to is ready by then. */
const WARM = 5;
/** A crowded machine may take its time until all is fresh; then it is measured as it is. */
const PATIENCE_S = 60;
const FRESH = 0.99;

const redis = new Redis({ port });
gatherWrites(redis);
const log = createLog({ level: 'silent' });
const sources = createSourcePool({ env: {}, log, clock: systemClock, everyMs: TICK_MS / 2 });
let turns = 0;
let overruns = 0;
let wallMs = 0;
const all = Array.from({ length: limiters }, (_each, i) => {
  const name = limiterName(i);
  const policy = policyOf(name);
  const sampler = createSampler({ redis, policy, address: { name }, clock: systemClock, sources });
  const one = { name, sampler, fresh: 0, run };
  let state = createEstimateState();
  async function run() {
    const start = performance.now();
    const readings = await sampler.read();
    const estimated = estimate(policy, state, readings, TICK_MS);
    state = estimated.state;
    one.fresh = Object.values(estimated.estimates.signals).filter(({ fresh }) => fresh).length;
    turns += 1;
    wallMs += performance.now() - start;
  }
  return one;
});
const signals = limiters * Object.keys(policyOf('any').signals).length;
const freshNow = () => all.reduce((sum, { fresh }) => sum + fresh, 0);

/** One tick of all, over the whole second: what is collected after a turn is part of it. */
async function second() {
  const before = { turns, overruns, wallMs, cpu: process.cpuUsage() };
  await new Promise((ok) => setTimeout(ok, TICK_MS));
  const { user, system } = process.cpuUsage(before.cpu);
  const turned = turns - before.turns;
  return {
    cpuMs: (user + system) / 1000,
    turns: turned,
    leftOut: overruns - before.overruns,
    turnMs: (wallMs - before.wallMs) / turned,
    fresh: freshNow(),
  };
}

const byName = new Map(all.map((one) => [one.name, one]));
const loop = createLoop({
  tickMs: TICK_MS,
  clock: systemClock,
  tasks: () => byName,
  run: (_name, one) => one.run(),
  onError: (_name, error) => {
    throw error;
  },
  onOverrun: () => {
    overruns += 1;
  },
});
loop.start();
for (let s = 0; s < WARM; s++) await second();
for (let s = WARM; s < PATIENCE_S && freshNow() < FRESH * signals; s++) await second();
const seconds = [];
for (let s = 0; s < ticks; s++) seconds.push(await second());
await loop.stop();
process.stdout.write(`${JSON.stringify(seconds)}\n`);
for (const { sampler } of all) await sampler.close();
redis.disconnect();
