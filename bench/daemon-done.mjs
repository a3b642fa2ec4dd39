/** What reporting costs: `done()` with its part of the flush in a service, a flush of 100 processes in Redis. */
import { createLimiter } from '../dist/index.js';
import { flushFields } from './daemon-load.mjs';
import { WIDE } from './limiter.mjs';
import { median } from './report.mjs';

const ROUNDS = 12;
const PROCESSES = 100;
const FLUSHES = 10;

/** CPU µs of one `done()` and its part of the flush, at so many a second; in this process, beside nothing else. */
export async function doneCost(server, perSecond) {
  const limiter = createLimiter({
    name: 'done',
    redis: server.connect(),
    ...WIDE,
    deadlineMs: 5000,
  });
  for (let i = 0; i < 3; i++) await limiter.peek();
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const decisions = await takeMany(limiter, perSecond);
    await wholeBeat();
    const idle = await cpuOf(wholeBeat);
    const calls = await cpuOf(() => {
      for (let i = 0; i < perSecond; i++)
        decisions[i].done(i % 50 === 0 ? 'failed' : 'ok', infoOf(i));
    });
    const beat = await cpuOf(wholeBeat);
    // The first round compiles.
    if (round > 0) rounds.push({ calls: calls / perSecond, flush: (beat - idle) / perSecond });
  }
  await limiter.close();
  const calls = median(rounds.map((each) => each.calls));
  const flush = median(rounds.map((each) => each.flush));
  return { calls, flush, whole: median(rounds.map((each) => each.calls + each.flush)) };
}

/** Over a little more than a second: one beat of the limiter, with its flush, is in it. */
const wholeBeat = () => new Promise((ok) => setTimeout(ok, 1010));

async function cpuOf(work) {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return user + system;
}

/** Requests of different age, as in a service: their times fill the bins of a flush. */
async function takeMany(limiter, count) {
  const decisions = [];
  const pause = 40;
  const parts = 12;
  for (let part = 0; part < parts; part++) {
    const n = Math.ceil(count / parts);
    decisions.push(...(await Promise.all(Array.from({ length: n }, () => limiter.take()))));
    await new Promise((ok) => setTimeout(ok, pause));
  }
  return decisions;
}

const infoOf = (i) => ({ dbWaitMs: 1 + (i % 40), ...(i % 50 === 0 && { code: 'E1' }) });

/** Bytes and Redis CPU of a flush, 100 processes of one limiter flushing once a second each. */
export async function flushCost(server, send) {
  const client = server.connect();
  const all = Array.from({ length: PROCESSES }, (_each, i) => flushFields(i + 1, 100, `p${i}`));
  const once = async (second) => {
    for (const fields of all) await send(client, `flyball:{flush}:t:${second}`, fields);
  };
  await once(0);
  const before = await inputBytes(server);
  const cpu = await server.cpuSeconds();
  for (let second = 1; second <= FLUSHES; second++) await once(second);
  const flushes = PROCESSES * FLUSHES;
  return {
    fields: median(all.map((fields) => Object.keys(fields).length)),
    bytes: ((await inputBytes(server)) - before) / flushes,
    redisUs: (((await server.cpuSeconds()) - cpu) * 1e6) / flushes,
  };
}

async function inputBytes(server) {
  return Number(/total_net_input_bytes:(\d+)/.exec(await server.control.info('stats'))[1]);
}
