/** The stream: pictures, what changed, what was missed, who comes back, who does not read, who is too many. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import { connect as connectRedis } from '../../src/redis/connect.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import {
  type ApiSetup,
  follow,
  jsonOf,
  type StreamedEvent,
  startApi,
  type TestApi,
} from '../support/api.js';
import { seedLimiter } from '../support/cli-run.js';
import { until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

let server: TestRedis;
let redis: Redis;
let api: TestApi;
const follows: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  redis.on('error', () => {});
});
afterAll(() => server.stop());
beforeEach(async () => {
  await redis.flushall();
  await seedLimiter(redis, { name: 'checkout' });
  await seedLimiter(redis, { name: 'search' });
  api = await startApi(redis);
});
afterEach(async () => {
  await Promise.all(follows.splice(0).map((one) => one.close()));
  await api.close();
});

async function restart(setup: ApiSetup) {
  await api.close();
  api = await startApi(redis, setup);
}

function watchIt(path?: string, headers?: Record<string, string>) {
  const one = follow(api, path, headers);
  follows.push(one);
  return one;
}

type Following = ReturnType<typeof watchIt>;

const event = (
  one: Following,
  name: string,
  matches: (event: StreamedEvent) => boolean = () => true,
) => until(`event ${name}`, () => one.events.find((seen) => seen.event === name && matches(seen)));

async function pinned(name: string, rate: number) {
  const outcome = await applyVerb(redis, { name }, pin({ rate }, 60_000), {
    actor: 'ada',
    verified: true,
    dryRun: false,
    nowMs: Date.now,
    approve: async () => true,
  });
  if (outcome.status !== 'done') throw new Error(outcome.status);
  return outcome.revision;
}

test('a picture first, then the rows that change and the entries that say why', async () => {
  const one = watchIt();
  const { data } = await event(one, 'snapshot');
  expect(data.limiters.map((row: { limiter: string }) => row.limiter)).toEqual([
    'checkout',
    'search',
  ]);
  expect(data.redisAway).toBeNull();
  const revision = await pinned('search', 42);
  const told = await event(one, 'limiters', ({ data: { limiters } }) =>
    limiters.some((row: { revision: number }) => row.revision === revision),
  );
  expect(told.data.limiters).toMatchObject([
    { limiter: 'search', inForce: { rate: 42 }, holds: [{ kind: 'pinned', by: 'ada' }] },
  ]);
  const entry = await event(one, 'audit');
  expect(entry.data.entries).toMatchObject([
    { limiter: 'search', revision, reason: 'pin', actor: { name: 'ada', verified: true } },
  ]);
  expect(one.events[0]!.event).toBe('snapshot');
});

test('what stands still is not sent again, and ticks say how old it is', async () => {
  const one = watchIt();
  await event(one, 'snapshot');
  await until('three ticks', () => one.events.filter((seen) => seen.event === 'tick').length >= 3);
  // What is told next is told of the one that changed.
  await pinned('checkout', 42);
  const told = await event(one, 'limiters');
  expect(told.data.limiters).toMatchObject([{ limiter: 'checkout', inForce: { rate: 42 } }]);
  const atMs = one.events.filter((seen) => seen.event === 'tick').map(({ data }) => data.atMs);
  expect([...atMs].sort((a, b) => a - b)).toEqual(atMs);
});

test('of one limiter alone: its rows, its entries, a point each look', async () => {
  const one = watchIt('/stream?limiter=checkout');
  const { data } = await event(one, 'snapshot');
  expect(data.limiters.map((row: { limiter: string }) => row.limiter)).toEqual(['checkout']);
  await pinned('search', 30);
  const revision = await pinned('checkout', 60);
  await event(one, 'audit', ({ data: { entries } }) => entries[0].revision === revision);
  const { data: seen } = await event(one, 'limiters', ({ data: { points } }) =>
    points.some((point: { rate: number }) => point.rate === 60),
  );
  expect(seen.points[0]).toMatchObject({ limiter: 'checkout', inFlightMax: 24, state: 'closed' });
  const others = one.events.flatMap(({ event: name, data: d }) =>
    name === 'audit' ? d.entries : name === 'limiters' ? d.limiters : [],
  );
  expect(others.every((row: { limiter: string }) => row.limiter === 'checkout')).toBe(true);
  const series = await jsonOf(await api.ask(null, 'GET', '/limiters/checkout/series'));
  expect(series.rate).toContain(60);
});

test('a limiter that comes is told, and one that goes', async () => {
  const one = watchIt();
  await event(one, 'snapshot');
  await seedLimiter(redis, { name: 'late' });
  await event(one, 'limiters', ({ data }) => data.limiters[0]?.limiter === 'late');
  await redis.hdel(fleetKeys().limiters, 'late');
  await event(one, 'limiters', ({ data }) => data.gone.includes('late'));
});

test('C97: who comes back with the last id gets what they missed; with an unknown one, all anew', async () => {
  const stays = watchIt();
  const first = watchIt();
  const last = await event(first, 'tick');
  await first.close();
  const revision = await pinned('checkout', 55);
  await event(stays, 'audit');
  const back = watchIt('/stream', { 'last-event-id': last.id });
  const missed = await event(back, 'audit');
  expect(missed.data.entries).toMatchObject([{ revision }]);
  expect(back.events.some((seen) => seen.event === 'snapshot')).toBe(false);
  const ids = back.events.map(({ id }) => Number(id.split('-').at(-1)));
  expect(ids).toEqual(ids.map((_, i) => ids[0]! + i));
  for (const id of ['other123-5', `${last.id.split('-')[0]}-999999`, 'what is this', '']) {
    const anew = watchIt('/stream', { 'last-event-id': id });
    await event(anew, 'snapshot');
    expect([id, anew.events[0]!.event]).toEqual([id, 'snapshot']);
  }
});

test('more than allowed are told to come later, and who leaves makes room', async () => {
  await restart({ watch: { mostClients: 2 } });
  const first = watchIt();
  await event(first, 'snapshot');
  await event(watchIt(), 'snapshot');
  const third = await api.ask(null, 'GET', '/stream');
  expect([third.status, third.headers.get('retry-after')]).toEqual([503, '10']);
  expect(await jsonOf(third)).toMatchObject({ code: 'FLYBALL_E_API_STREAMS' });
  await first.close();
  await until('room', () => api.watch.clients < 2);
  await event(watchIt(), 'snapshot');
});

test('one client holds sixteen, and no more; others, and who leaves, are served', async () => {
  const reader = { authorization: `Bearer ${api.tokens.reader}` };
  const held = Array.from({ length: 16 }, () => watchIt('/stream', reader));
  for (const each of held) await event(each, 'snapshot');
  const more = await api.ask('reader', 'GET', '/stream');
  expect([more.status, more.headers.get('retry-after')]).toEqual([429, '10']);
  const { code, detail } = await jsonOf(more);
  expect([code, detail]).toEqual([
    'FLYBALL_E_API_STREAMS',
    expect.stringMatching(/^You follow 16 streams .* Close one\.$/),
  ]);
  // By another token, and by none, as of another address.
  await event(watchIt('/stream', { authorization: `Bearer ${api.tokens.operator}` }), 'snapshot');
  await event(watchIt(), 'snapshot');
  await held[0]!.close();
  await until('room', async () => {
    const again = watchIt('/stream', reader);
    await until('an answer', () => again.events.length > 0 || again.state.ended);
    return again.events[0]?.event === 'snapshot';
  });
});

test('who is told to come later holds nothing', async () => {
  await restart({ watch: { mostClients: 1 } });
  const first = watchIt();
  await event(first, 'snapshot');
  for (let i = 0; i < 20; i++) expect((await api.ask(null, 'GET', '/stream')).status).toBe(503);
  await first.close();
  await until('room', () => api.watch.clients === 0);
  await event(watchIt(), 'snapshot');
});

test('who does not read is cut, and the others hear on', async () => {
  // Rows of a megabyte: what nobody reads is soon too much.
  await redis.set(
    limiterKeys({ name: 'checkout' }).status,
    JSON.stringify({ faults: ['x'.repeat(1_000_000)] }),
  );
  const reads = watchIt();
  await event(reads, 'snapshot');
  const socket = connect(api.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await until('two clients', () => api.watch.clients === 2);
  socket.pause();
  let n = 0;
  await until('it to be cut', async () => {
    await redis.set(
      limiterKeys({ name: 'checkout' }).status,
      JSON.stringify({ faults: [`${n++}`, 'x'.repeat(1_000_000)] }),
    );
    return api.watch.clients === 1;
  });
  socket.destroy();
  const seen = reads.events.length;
  await until('the other to hear on', () => reads.events.length > seen + 2);
  expect(reads.state.ended).toBe(false);
});

test('a token that is taken back ends what it follows', async () => {
  await restart({ boundTo: '0.0.0.0', heartbeatMs: 50 });
  const one = watchIt('/stream', { authorization: `Bearer ${api.tokens.reader}` });
  await event(one, 'snapshot');
  writeFileSync(api.tokensFile, '# none\n');
  await until('its end', () => one.state.ended);
});

test('Redis killed: ticks say so and how old all is; back: rows come again', async () => {
  await api.close();
  const patient = connectRedis({ url: server.url, name: 'daemon' });
  patient.on('error', () => {});
  api = await startApi(patient);
  const one = watchIt();
  await event(one, 'snapshot');
  await server.kill();
  const away = await event(one, 'tick', ({ data }) => data.redisAway !== null);
  expect(away.data.atMs).toBeGreaterThan(0);
  await server.restart();
  await seedLimiter(redis, { name: 'anew' });
  await event(one, 'limiters', ({ data }) => data.limiters[0]?.limiter === 'anew');
  await until('a tick that is well', () => one.events.at(-1)!.data.redisAway === null);
  patient.disconnect();
});
