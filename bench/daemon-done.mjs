/** What reporting costs: `done()` with its part of the flush in a service, a flush of 100 processes in Redis. */
import { systemClock } from '../dist/clock.js';
import { createFlush } from '../dist/enforce/flush.js';
import { createRecorder } from '../dist/enforce/recorder.js';
import { createStats } from '../dist/enforce/stats.js';
import { createLimiter } from '../dist/index.js';
import { limiterKeys } from '../dist/redis/keys.js';
import { sendReport } from '../dist/redis/telemetry-report.js';
import { flushed, flushText } from './daemon-load.mjs';
import { WIDE } from './limiter.mjs';
import { median } from './report.mjs';

const ROUNDS = 9;
const CALLS = 1200;
const PARTS = 12;
const PROCESSES = 100;
const FLUSHES = 20;

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

/** CPU µs of a flush of so many requests, by the product's own code on a real connection, each awaited. */
async function ownFlushCost(server, requests) {
  const redis = server.connect();
  const keys = limiterKeys({ name: 'flushed' });
  const recorder = createRecorder();
  const flush = createFlush({
    ...{ redis, recorder, clock: systemClock, stats: createStats(), processId: 'host:1:abcdef01' },
    link: () => ({ up: true, within: (_atMs, call) => call() }),
    finder: { keys },
    time: { nowMs: () => Date.now() },
    inFlight: { reports: true, inUse: 3, oldestMs: () => 40 },
    pool: { take: () => 0 },
    vitals: { take: () => null },
  });
  const infos = flushed(requests);
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    let us = 0;
    for (let i = 0; i < FLUSHES; i++) {
      for (const { latencyMs, info } of infos) recorder.outcome('ok', latencyMs, 0, info);
      us += await cpuOf(flush);
    }
    if (round > 0) rounds.push(us / FLUSHES);
  }
  return median(rounds);
}

/** What `done()` costs a service at so many a second in one process: the call, and its part of the flush. */
export async function doneCosts(server, perSecond) {
  const call = await callCost(server);
  const costs = [];
  for (const requests of perSecond) {
    const flush = (await ownFlushCost(server, requests)) / requests;
    costs.push({ requests, call, flush, whole: call + flush });
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
