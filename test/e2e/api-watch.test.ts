/** The one look at Redis behind all streams: what it costs, what it tells whom, and of when that is. */
import type { Command, Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import type { Watcher } from '../../src/api/channel.js';
import { createWatch, type Watch } from '../../src/api/watch.js';
import { type ManualClock, manualClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { createOwnStatuses, type OwnStatuses } from '../../src/view/own-statuses.js';
import { seedLimiter } from '../support/cli-run.js';
import { until } from '../support/daemon.js';
import { redisBench } from '../support/redis-bench.js';

const EVERY_MS = 20;
/** How long a channel is kept for who comes back. */
const LINGER_MS = 30_000;
let redis: Redis;
let clock: ManualClock;
let watch: Watch;
let asked: Asked[];
let news: number;
/** Looks that are over: each says once what it wants to hear of next. */
let turns: number;

/** A command that the watch sends, and the first key it names. */
interface Asked {
  command: string;
  key: string;
}

redisBench(async (bench) => {
  ({ redis } = bench);
  clock = manualClock(Date.now());
  asked = [];
  news = 0;
  turns = 0;
  const own = createOwnStatuses(clock);
  const counting: OwnStatuses = {
    ...own,
    want(...next) {
      turns += 1;
      own.want(...next);
    },
  };
  watch = createWatch({
    session: { redis: counted(redis, asked), url: 'redis://test', prefix: undefined },
    ...{ clock, own: counting, log: createLog({ level: 'silent' }), everyMs: EVERY_MS },
    onNews: () => {
      news += 1;
    },
  });
});
afterEach(() => watch.close());

/** The same Redis; what is asked of it is noted. */
function counted(real: Redis, log: Asked[]): Redis {
  return new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      return (...args: unknown[]) => {
        const leases = name === 'sendCommand' ? leasesIn(args[0] as Command) : [];
        log.push({ command: name, key: String(args[0]) });
        log.push(...leases.map((key) => ({ command: 'look', key })));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

/** Of a script call that is sent as ready bytes: one look is at many limiters. */
function leasesIn(command: Command): string[] {
  return String(command.toWritable({})).match(/\S+:lease(?=\r\n)/g) ?? [];
}

/** Limiters that were read since the log was last emptied: each read asks for the lease once. */
const readOf = () =>
  asked.filter(({ command }) => command === 'look').map(({ key }) => /\{(.*)\}/.exec(key)![1]!);

interface Following {
  bytes: Uint8Array[];
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what they expect.
  events: { id: string; event: string; data: any; read: string[]; news: number }[];
  leave: () => void;
}

/** `null`: all limiters. With each event goes what had been read by then, since the event before. */
function follow(limiter: string | null, lastId?: string): Following {
  const seen: Following = { bytes: [], events: [], leave: () => {} };
  const watcher: Watcher = {
    send(bytes) {
      seen.bytes.push(bytes);
      const text = new TextDecoder().decode(bytes);
      const [, id = '', event = '', data = ''] =
        /^id: (.*)\nevent: (.*)\ndata: (.*)\n\n$/.exec(text) ?? [];
      seen.events.push({ id, event, data: JSON.parse(data), read: readOf(), news });
      if (event === 'tick') asked.length = 0;
    },
    end() {},
  };
  seen.leave = watch.join(limiter === null ? null : { name: limiter }, lastId, watcher)!;
  return seen;
}

async function looksMore(count: number): Promise<void> {
  const from = turns;
  await until(`${count} looks`, () => turns >= from + count);
}

const event = (one: Following, name: string, from = 0) =>
  until(`event ${name}`, () => one.events.slice(from).find((seen) => seen.event === name));
const names = (rows: { limiter: string }[]) => rows.map(({ limiter }) => limiter).sort();

test('one that cannot be read costs no more than itself, and the others are told', async () => {
  for (const name of ['checkout', 'search']) await seedLimiter(redis, { name });
  await redis.hset(fleetKeys().limiters, { broken: '' });
  const { params } = limiterKeys({ name: 'broken' });
  await redis.set(params, 'no hash');
  // More than one look reads: each has its turn.
  const many = Array.from({ length: 300 }, (_, i) => `unmanaged-${i}`);
  await redis.hset(fleetKeys().limiters, Object.fromEntries(many.map((name) => [name, ''])));
  const one = follow(null);
  const { data, read } = await event(one, 'snapshot');
  expect(data.redisAway).toBeNull();
  expect(names(data.limiters)).not.toContain('broken');
  expect(data.limiters).toHaveLength(302);
  // The first calls find no script and are sent once more.
  expect(new Set(read).size).toBeLessThanOrEqual(303);
  const looks = await until('four looks more', () => {
    const ticks = one.events.filter((seen) => seen.event === 'tick').slice(1);
    return ticks.length >= 4 ? ticks : null;
  });
  for (const look of looks) {
    expect(look.read.length).toBeLessThanOrEqual(251);
    expect(look.data.redisAway).toBeNull();
  }
  await redis.del(params);
  await seedLimiter(redis, { name: 'broken' });
  await until('it to be told', () =>
    one.events.some(
      (seen) => seen.event === 'limiters' && names(seen.data.limiters).includes('broken'),
    ),
  );
});

test('of many those that somebody shows are read at each look', async () => {
  const many = Array.from({ length: 1000 }, (_, i) => `unmanaged-${i}`);
  await redis.hset(fleetKeys().limiters, Object.fromEntries(many.map((name) => [name, ''])));
  const one = follow(null);
  const { data } = await event(one, 'snapshot');
  expect(data).toMatchObject({ lookMs: EVERY_MS, everyMs: 4 * EVERY_MS });
  const inSight = ['unmanaged-7', 'unmanaged-8', 'unmanaged-9'];
  expect(watch.show([...inSight, 'nobody'])).toBe(3);
  const from = one.events.length;
  const ticks = await until('five looks', () => {
    const seen = one.events.slice(from).filter((each) => each.event === 'tick');
    return seen.length >= 6 ? seen.slice(1) : null;
  });
  for (const { read } of ticks) {
    expect(read).toEqual(expect.arrayContaining(inSight));
    expect(new Set(read).size).toBe(read.length);
    expect(read.length).toBeLessThanOrEqual(253);
  }
});

test('all who follow are told the same bytes, made once', async () => {
  await seedLimiter(redis, { name: 'checkout' });
  const [a, b] = [follow(null), follow(null)];
  await event(a, 'tick', 1);
  await event(b, 'tick', 1);
  expect(a.events[0]!.event).toBe('snapshot');
  const same = Math.min(a.bytes.length, b.bytes.length);
  expect(same).toBeGreaterThan(1);
  for (let i = 0; i < same; i++) expect(a.bytes[i]).toBe(b.bytes[i]);
});

test('a channel that nobody hears is forgotten by itself, though others go on', async () => {
  for (const name of ['checkout', 'search']) await seedLimiter(redis, { name });
  follow('checkout');
  const first = follow('search');
  const { id } = await event(first, 'tick');
  first.leave();
  await looksMore(2);
  clock.advance(LINGER_MS - 1);
  await looksMore(2);
  const back = follow('search', id);
  await event(back, 'tick');
  expect(back.events.some((seen) => seen.event === 'snapshot')).toBe(false);
  back.leave();
  await looksMore(2);
  clock.advance(LINGER_MS);
  await looksMore(2);
  const late = follow('search', id);
  await event(late, 'tick');
  expect(late.events[0]!.event).toBe('snapshot');
});

test('who joins in the middle of a look at others waits for a picture that is whole', async () => {
  for (const name of ['checkout', 'search']) await seedLimiter(redis, { name });
  const one = follow('checkout');
  await event(one, 'snapshot');
  let all: Following | null = null;
  // In the middle of a look: between what it asks of Redis and what it tells.
  const asks = asked.push.bind(asked);
  asked.push = (...what) => {
    if (all === null && what.some(({ command }) => command === 'look')) all = follow(null);
    return asks(...what);
  };
  const joined = await until('the look', () => all);
  const { data } = await event(joined, 'snapshot');
  expect(names(data.limiters)).toEqual(['checkout', 'search']);
});

test('a picture from before a pause says of when it is; then all rows are read anew, once', async () => {
  for (const name of ['checkout', 'search']) await seedLimiter(redis, { name });
  const first = follow(null);
  const { data: before } = await event(first, 'tick', 2);
  first.leave();
  const focused = follow('checkout');
  await until('Redis time to pass', () => {
    const tick = focused.events.findLast((seen) => seen.event === 'tick');
    return tick !== undefined && tick.data.atMs > before.atMs + 50 ? tick : null;
  });
  await redis.hset(limiterKeys({ name: 'search' }).params, { rate: 42 });
  const back = follow(null);
  expect(back.events[0]).toMatchObject({ event: 'snapshot', data: { redisAway: null } });
  const ageMs = focused.events.findLast((seen) => seen.event === 'tick')!.data.atMs;
  expect(back.events[0]!.data.atMs).toBeLessThan(ageMs);
  const tick = await event(back, 'tick');
  expect(tick.data.atMs).toBeGreaterThan(back.events[0]!.data.atMs);
  const told = back.events.slice(0, back.events.indexOf(tick));
  const rows = told.filter((seen) => seen.event === 'limiters');
  expect(rows.flatMap(({ data }) => names(data.limiters))).toContain('search');
  expect(new Set(tick.read).size).toBe(tick.read.length);
});

test('with nobody who follows nothing is asked; news are told before those who follow', async () => {
  await seedLimiter(redis, { name: 'checkout' });
  const one = follow(null);
  const { id } = await event(one, 'tick');
  expect(one.events.map((seen) => seen.news)).not.toContain(0);
  one.leave();
  await looksMore(2);
  clock.advance(LINGER_MS);
  await looksMore(1);
  const rested = [turns, asked.length];
  await new Promise((ok) => setTimeout(ok, 5 * EVERY_MS));
  expect([turns, asked.length]).toEqual(rested);
  const back = follow(null, id);
  await event(back, 'tick');
  expect(back.events[0]!.event).toBe('snapshot');
});
