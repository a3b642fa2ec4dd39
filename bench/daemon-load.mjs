/** Telemetry of many limiters, written as their services would leave it: ready bytes, so that the load costs little. */
import { fork } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { createRecorder } from '../dist/enforce/recorder.js';
import { binOf } from '../dist/histogram.js';
import { limiterKeys } from '../dist/redis/keys.js';
import { FIELD } from '../dist/redis/telemetry-fields.js';
import { resolvePolicy } from '../dist/testing.js';
import { randomFrom } from './load.mjs';

export const PROCESSES = 4;
const REQUESTS = 25;

/** Four signals, an objective, a breaker: a usual policy. */
export function policyOf(name) {
  return resolvePolicy({
    limiter: { name, rate: 150, capacity: 75, inFlightMax: 24 },
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      wait: { source: 'telemetry', stat: 'dbWait', of: 0.95 },
      queue: { source: 'telemetry', stat: 'poolWaiting' },
      errors: { source: 'telemetry', stat: 'errorRatio' },
    },
    objective: { p95: { below: '250ms' }, wait: { below: '80ms' }, queue: { below: 10 } },
    control: { law: 'adaptive' },
    bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
    breaker: { on: 'errors', above: '50%', openFor: '5s' },
    mode: 'auto',
  });
}

export const limiterName = (i) => `l${String(i).padStart(4, '0')}`;

/** Times of so many requests, spread as in a service. */
export function flushed(requests, seed = 1) {
  const random = randomFrom(seed);
  return Array.from({ length: requests }, () => ({
    latencyMs: 40 * Math.exp(random() + random() + random() - 1.5),
    info: { dbWaitMs: 2 + 20 * random() * random() },
  }));
}

/** What one process counts in a second, as fields of a flush. */
export function flushFields(seed, requests = REQUESTS, processId = `process-${seed}`) {
  const recorder = createRecorder();
  for (const [i, { latencyMs, info }] of flushed(requests, seed).entries()) {
    recorder.offered();
    recorder.admitted();
    if (i % 50 === 7) recorder.outcome('failed', latencyMs, 0, { ...info, code: 'E1' });
    else recorder.outcome('ok', latencyMs, 0, info);
  }
  const fields = {};
  recorder.drain((field, count) => {
    fields[field] = count;
  });
  return Object.assign(fields, {
    [FIELD.process(processId)]: 1,
    [FIELD.reportingProcess(processId)]: 1,
    [FIELD.inFlight]: 1 + (seed % 5),
    [FIELD.oldest(binOf(60 + seed))]: 1,
    [FIELD.poolWaiting]: 1 + (seed % 3),
    [FIELD.poolFlushes]: 1,
    [FIELD.flushes]: 1,
  });
}

/** The same as the SDK sends it. */
export function flushText(...of) {
  return Object.entries(flushFields(...of))
    .flat()
    .join('\n');
}

/** Times a second at which some of the processes of each limiter flush. */
const BEATS = 2;

const FEED = fileURLToPath(new URL('daemon-feed.mjs', import.meta.url));

/** `startLoad` in a process of its own: a bench that is busy does not hold it up, and its cost is not the bench's. */
export async function startFeed(port, limiters) {
  const child = fork(FEED, [String(port), String(limiters)]);
  const ended = new Promise((ok) => child.once('exit', ok));
  const told = new Promise((ok) => child.once('message', ok));
  const failed = ended.then(() => {
    throw new Error('bench: the feed has ended');
  });
  failed.catch(() => {});
  const { fields } = await Promise.race([told, failed]);
  return {
    fields,
    async stop() {
      child.kill();
      await ended;
    },
  };
}

/** Keys that hold what the processes of a limiter have counted after each beat of a second. */
const template = (beat) => `flyball:{bench}:beat:${beat}`;

/**
 * Four processes of each limiter flush once a second, two and two. Redis copies ready hashes: to take in the
 * fields of a thousand limiters twice a second costs it more than all that is to be measured.
 */
export async function startLoad(port, limiters) {
  const redis = new Redis({ port });
  const sums = {};
  const beats = [];
  for (let p = 0; p < PROCESSES; p++) {
    for (const [field, n] of Object.entries(flushFields(p + 1)))
      sums[field] = (sums[field] ?? 0) + n;
    if ((p + 1) % (PROCESSES / BEATS) !== 0) continue;
    const from = template(beats.length);
    await redis.hset(from, sums);
    beats.push(bytesOf(from, limiters));
  }
  redis.disconnect();
  const socket = connect(port, '127.0.0.1');
  socket.resume();
  socket.on('error', () => {});
  let nextMs = 0;
  let timer;
  function send() {
    // Of each second first the one half, then all: a beat that comes late leaves out those that it is too late for.
    const beat = Math.floor((Date.now() % 1000) / (1000 / BEATS));
    const { bytes, places } = beats[beat];
    const copy = Buffer.from(bytes);
    const second = String(Math.floor(Date.now() / 1000));
    for (const place of places) copy.write(second, place, 'latin1');
    socket.write(copy);
    nextMs = Math.max(nextMs + 1000 / BEATS, Date.now());
    timer = setTimeout(send, nextMs - Date.now());
  }
  // From the first part of a second on, so that all flushes of a second lie in it.
  timer = setTimeout(
    () => {
      nextMs = Date.now();
      send();
    },
    1100 - (Date.now() % 1000),
  );
  return {
    fields: Object.keys(sums).length,
    stop() {
      clearTimeout(timer);
      socket.destroy();
    },
  };
}

/** The commands of one beat for all limiters, and where in them the second stands. */
function bytesOf(from, limiters) {
  const zero = '0'.repeat(String(Math.floor(Date.now() / 1000)).length);
  const places = [];
  const texts = [];
  let length = 0;
  const add = (text) => {
    texts.push(text);
    length += text.length;
  };
  for (let i = 0; i < limiters; i++) {
    const key = bulk(limiterKeys({ name: limiterName(i) }).telemetry(zero));
    const at = key.lastIndexOf(zero);
    const copied = `*4\r\n$4\r\nCOPY\r\n${bulk(from)}`;
    places.push(length + copied.length + at);
    add(`${copied}${key}$7\r\nREPLACE\r\n`);
    add('*3\r\n$7\r\nPEXPIRE\r\n');
    places.push(length + at);
    add(`${key}$6\r\n120000\r\n`);
  }
  return { bytes: Buffer.from(texts.join(''), 'latin1'), places };
}

function bulk(text) {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}
