/** A process that only senses and estimates, as a daemon does: `node daemon-sense.mjs <port> <limiters> <ticks>`; one JSON line. */
import { Redis } from 'ioredis';
import { systemClock } from '../dist/clock.js';
import { createEstimateState, estimate } from '../dist/estimate/estimate.js';
import { createLog } from '../dist/log.js';
import { createSampler } from '../dist/sense/sampler.js';
import { createSourcePool } from '../dist/sense/source-pool.js';
import { limiterName, policyOf } from './daemon-load.mjs';

const [port, limiters, ticks] = process.argv.slice(2).map(Number);
const TICK_MS = 1000;
const WARM = 5;

const redis = new Redis({ port });
const log = createLog({ level: 'silent' });
const sources = createSourcePool({ env: {}, log, clock: systemClock, everyMs: TICK_MS / 2 });
const all = Array.from({ length: limiters }, (_each, i) => {
  const policy = policyOf(limiterName(i));
  const address = { name: limiterName(i) };
  const sampler = createSampler({ redis, policy, address, clock: systemClock, sources });
  return { policy, sampler, state: createEstimateState(), fresh: 0 };
});

async function tick() {
  await Promise.all(
    all.map(async (one) => {
      const readings = await one.sampler.read();
      const { state, estimates } = estimate(one.policy, one.state, readings, TICK_MS);
      one.state = state;
      one.fresh = Object.values(estimates.signals).filter((signal) => signal.fresh).length;
    }),
  );
}

const cpuMs = [];
const wallMs = [];
let nextMs = performance.now();
let before = process.cpuUsage();
for (let i = 0; i < WARM + ticks; i++) {
  const start = performance.now();
  await tick();
  const took = performance.now() - start;
  nextMs += TICK_MS;
  await new Promise((ok) => setTimeout(ok, Math.max(0, nextMs - performance.now())));
  // Over the whole second: what is collected after a tick is part of it.
  const now = process.cpuUsage();
  if (i >= WARM) {
    cpuMs.push((now.user - before.user + now.system - before.system) / 1000);
    wallMs.push(took);
  }
  before = now;
}
const fresh = all.reduce((sum, one) => sum + one.fresh, 0);
process.stdout.write(
  `${JSON.stringify({ cpuMs, wallMs, fresh, rss: process.memoryUsage().rss })}\n`,
);
for (const { sampler } of all) await sampler.close();
redis.disconnect();
