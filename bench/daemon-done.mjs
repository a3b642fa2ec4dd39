/** What reporting costs: `done()` with its part of the flush in a service, a flush of 100 processes in Redis. */
import { systemClock } from '../dist/clock.js';
import { createFlush } from '../dist/enforce/flush.js';
import { partsOf } from '../dist/enforce/limiter-parts.js';
import { createRecorder } from '../dist/enforce/recorder.js';
import { createSamples } from '../dist/enforce/samples.js';
import { createStats } from '../dist/enforce/stats.js';
import { createLimiter } from '../dist/index.js';
import { inOneWrite } from '../dist/redis/gather-writes.js';
import { limiterKeys } from '../dist/redis/keys.js';
import { sendReport } from '../dist/redis/telemetry-report.js';
import { flushed, flushText } from './daemon-load.mjs';
import { managedLimiter, WIDE } from './limiter.mjs';
import { median } from './report.mjs';

const ROUNDS = 9;
const CALLS = 1200;
const PARTS = 12;
const PROCESSES = 100;
const FLUSHES = 20;
/** Beats measured; and those before them, in which the code is compiled: a service runs for days. */
const BEATS = 400;
const WARM = 400;
const PROCESS_ID = 'host:1:abcdef01';

/** CPU µs of one `done()` in a limiter that is at work, its decision taken before. */
async function callCost(server) {
  const limiter = createLimiter({
    name: 'done',
    redis: server.connect(),
    ...WIDE,
    deadlineMs: 5000,
  });
  for (let i = 0; i < 3; i++) await limiter.peek();
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const decisions = await takeMany(limiter, CALLS);
    const us = await cpuOf(() => {
      for (let i = 0; i < CALLS; i++) decisions[i].done(...endOf(i));
    });
    // The first round compiles.
    if (round > 0) rounds.push(us / CALLS);
  }
  await limiter.close();
  return median(rounds);
}

/**
 * CPU µs that a flush of so many requests adds to the beat of its limiter: beats with and without it, turn by turn, by
 * the product's own code on a real connection, each awaited. All else of the beat goes out each second anyway.
 */
async function ownFlushCost(server, requests) {
  const redis = server.connect();
  const limiter = await managedLimiter(redis, `flushed-${requests}`, {});
  const { link, shares, finder, time, view, warn } = partsOf('limiter', limiter);
  const refresh = () => shares.refresh(systemClock.monotonicMs() + 5000);
  const recorder = createRecorder();
  const beside = { redis, link: () => link, finder, time, view, warn, clock: systemClock };
  const samples = createSamples({ ...beside, processId: PROCESS_ID });
  const flush = createFlush({
    ...{ ...beside, recorder, stats: createStats(samples, null), processId: PROCESS_ID },
    inFlight: { reports: true, inUse: 3, oldestMs: () => 40 },
    pool: { take: () => 0 },
    vitals: { take: () => null },
  });
  const rest = () => [samples.beat(), refresh()];
  const infos = flushed(requests);
  async function beat(send, hasEnded) {
    if (hasEnded)
      for (const { latencyMs, info } of infos) recorder.outcome('ok', latencyMs, 0, info);
    // As at this rate: the last request was so long ago, and the process has slept since.
    await limiter.take();
    await new Promise((ok) => setTimeout(ok, 1000 / requests));
    return cpuOf(() => Promise.all(inOneWrite(redis, send)));
  }
  const without = () => beat(rest, false);
  const whole = () => beat(() => [flush(), ...rest()], true);
  const added = [];
  const alone = [];
  for (let i = -WARM; i < BEATS; i++) {
    // Neighbours, the one first and then the other: what else the machine does falls on both.
    const first = i % 2 === 0;
    const us = first ? await without() : await whole();
    const difference = first ? (await whole()) - us : us - (await without());
    if (i >= 0) added.push(difference);
    if (i >= 0 && i % 4 === 0) alone.push(await beat(() => [flush()], true));
  }
  await limiter.close();
  return { added: median(added), alone: median(alone) };
}

/** What `done()` costs a service at so many a second in one process: the call, and its part of the flush. */
export async function doneCosts(server, perSecond) {
  const call = await callCost(server);
  const costs = [];
  for (const requests of perSecond) {
    const { added, alone } = await ownFlushCost(server, requests);
    const flush = added / requests;
    costs.push({ requests, call, flush, whole: call + flush, aloneUs: alone });
  }
  return costs;
}

async function cpuOf(work) {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return user + system;
}

/** Requests of different age, as in a service: their times fill many bins. */
async function takeMany(limiter, count) {
  const decisions = [];
  for (let part = 0; part < PARTS; part++) {
    const n = Math.ceil(count / PARTS);
    decisions.push(...(await Promise.all(Array.from({ length: n }, () => limiter.take()))));
    await new Promise((ok) => setTimeout(ok, 20));
  }
  return decisions;
}

const endOf = (i) =>
  i % 50 === 0 ? ['failed', { dbWaitMs: 1, code: 'E1' }] : ['ok', { dbWaitMs: 1 + (i % 40) }];

/** Bytes and Redis CPU of a flush, 100 processes of one limiter flushing once a second each. */
export async function flushCost(server) {
  const client = server.connect();
  const keys = limiterKeys({ name: 'many' });
  const all = Array.from({ length: PROCESSES }, (_each, i) =>
    flushText(i + 1, 100, `host:${i}:abcdef01`),
  );
  const once = (second) =>
    Promise.all(all.map((text) => sendReport(client, keys.telemetry(second), text)));
  await once(0);
  const before = await inputBytes(server);
  const cpu = await server.cpuSeconds();
  for (let second = 1; second <= FLUSHES; second++) await once(second);
  const flushes = PROCESSES * FLUSHES;
  return {
    fields: median(all.map((text) => text.split('\n').length / 2)),
    bytes: ((await inputBytes(server)) - before) / flushes,
    redisUs: (((await server.cpuSeconds()) - cpu) * 1e6) / flushes,
  };
}

async function inputBytes(server) {
  return Number(/total_net_input_bytes:(\d+)/.exec(await server.control.info('stats'))[1]);
}
