/** A decision alone, against the same script called by ioredis, and the memory of one subject. */

import { limiterKeys } from '../dist/redis/keys.js';
import { takeCall } from '../dist/redis/scripts.js';
import { managedLimiter } from './limiter.mjs';
import { median, target } from './report.mjs';

const ROUNDS = 9;
const CALLS = 400;
const SUBJECT = { subject: 'u:{id}', rate: 1e5, capacity: 1e6 };

export async function lonePart(server) {
  const limiter = await managedLimiter(server.connect(), 'lone', { perSubject: SUBJECT });
  const client = server.connect();
  const request = { subject: 'u0000042', cost: 1, priority: 'default' };
  const fallback = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: 1, subjectCapacity: 1 };
  const { script, keys, args } = takeCall({
    keys: limiterKeys({ name: 'lone' }),
    takes: [request],
    chargeByUs: 'any',
    fallback,
    shadow: false,
  });
  const one = await client.script('LOAD', 'return 1');
  const ways = {
    'flyball take': () => limiter.take('u0000042'),
    'ioredis EVALSHA of the same call': () =>
      client.evalsha(script.sha, keys.length, ...keys, ...args),
    'ioredis EVALSHA return 1': () => client.evalsha(one, 0),
  };
  const names = Object.keys(ways);
  const rounds = [];
  for (const name of names) await timed(ways[name], 2_000);
  for (let round = 0; round < ROUNDS; round++) {
    // Call by call in turn: a pause of the machine hits all three alike.
    const times = names.map(() => []);
    for (let i = 0; i < CALLS; i++) {
      for (let k = 0; k < names.length; k++) {
        const at = (i + k) % names.length;
        times[at].push(await timed(ways[names[at]], 1));
      }
    }
    rounds.push(times.map((each) => median(each)));
  }
  await limiter.close();
  const p50 = (at) => median(rounds.map((medians) => medians[at]));
  const against = (at) => median(rounds.map((medians) => medians[0] / medians[at]));
  return {
    tables: [
      {
        title: `A lone decision, p50 of ${CALLS} calls in turn, ${ROUNDS} rounds`,
        columns: ['', 'p50 µs', 'flyball ÷ this'],
        rows: names.map((name, at) => [name, p50(at), against(at)]),
      },
    ],
    targets: [target(`lone: p50 ÷ ${names[1]}`, against(1), '<=', 1.15)],
    notes: [
      `A lone decision against \`${names[2]}\`, which decides nothing: ${against(2).toFixed(2)}.`,
    ],
  };
}

async function timed(call, times) {
  const start = performance.now();
  for (let i = 0; i < times; i++) await call();
  return ((performance.now() - start) * 1000) / times;
}

/** MEMORY USAGE of a subject's bucket, the name 8 characters long, the limiter's too. */
export async function memoryPart(server) {
  const name = 'checkout';
  const limiter = await managedLimiter(server.connect(), name, { perSubject: SUBJECT });
  const subjects = Array.from({ length: 100 }, (_each, i) => `user${1000 + i}`);
  for (const subject of subjects) await limiter.take(subject);
  const keys = limiterKeys({ name });
  const bytes = await Promise.all(
    subjects.map((subject) => server.control.memory('USAGE', keys.subjectBucket(subject))),
  );
  await limiter.close();
  const value = median(bytes);
  return {
    tables: [
      {
        title: 'Memory',
        columns: ['', 'bytes'],
        rows: [['a subject of 8 characters (MEMORY USAGE)', value]],
      },
    ],
    targets: [target('memory: bytes of a subject', value, '<=', 110)],
  };
}
