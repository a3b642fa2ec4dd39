/** Telemetry of many limiters, written as their services would leave it: ready bytes, so that the load costs little. */
import { connect } from 'node:net';
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

/** Four processes of each limiter flush once a second, two and two. */
export function startLoad(port, limiters) {
  const sums = {};
  const beats = [];
  for (let p = 0; p < PROCESSES; p++) {
    for (const [field, n] of Object.entries(flushFields(p + 1)))
      sums[field] = (sums[field] ?? 0) + n;
    if ((p + 1) % (PROCESSES / BEATS) === 0) beats.push(bytesOf(sums, limiters));
  }
  const socket = connect(port, '127.0.0.1');
  socket.resume();
  socket.on('error', () => {});
  let beat = 0;
  let nextMs = 0;
  let timer;
  function send() {
    const { bytes, places } = beats[beat % BEATS];
    const copy = Buffer.from(bytes);
    const second = String(Math.floor(Date.now() / 1000));
    for (const place of places) copy.write(second, place, 'latin1');
    socket.write(copy);
    beat += 1;
    nextMs += 1000 / BEATS;
    timer = setTimeout(send, Math.max(0, nextMs - Date.now()));
  }
  // From the first half of a second on, so that all flushes of a second lie in it.
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
function bytesOf(fields, limiters) {
  const zero = '0'.repeat(String(Math.floor(Date.now() / 1000)).length);
  const parts = Object.entries(fields).flatMap(([field, n]) => [bulk(field), bulk(String(n))]);
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
    add(`*${2 + parts.length}\r\n$4\r\nHSET\r\n`);
    places.push(length + at);
    add(key + parts.join(''));
    add('*3\r\n$7\r\nPEXPIRE\r\n');
    places.push(length + at);
    add(`${key}$6\r\n120000\r\n`);
  }
  return { bytes: Buffer.from(texts.join(''), 'latin1'), places };
}

function bulk(text) {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}
