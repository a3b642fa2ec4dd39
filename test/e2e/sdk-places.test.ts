/** The change from shares to places and back, by the policy and by the size of the fleet, on processes that work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { serviceTermsText } from '../../src/redis/service-terms.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const SCRIPT = fileURLToPath(new URL('../support/sdk-places.mjs', import.meta.url));
const name = 'places';
const keys = limiterKeys({ name });
const TALLY = 'tally';
const NUMBERS = { rate: 1e5, capacity: 1e5 };
const bench = sdkBench(name);
const children: Child[] = [];
beforeEach(() => bench.admin.flushall());
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
});

interface Child {
  pid: string;
  last: { done: number; share: number | null; processes: number };
  kill(): Promise<void>;
}

function start(): Child {
  const process_: ChildProcess = spawn(process.execPath, [SCRIPT, bench.server.url, name, TALLY], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const child: Child = {
    pid: String(process_.pid),
    last: { done: 0, share: null, processes: 0 },
    async kill() {
      if (process_.exitCode !== null || process_.signalCode !== null) return;
      const gone = once(process_, 'exit');
      process_.kill('SIGKILL');
      await gone;
    },
  };
  createInterface({ input: process_.stdout! }).on('line', (line) => {
    child.last = JSON.parse(line);
  });
  children.push(child);
  return child;
}

const limiter = (options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ name, completions: true, ...options });

/** Looks until `holds`; the most that was ever seen under way on the way there. */
async function mostUnderWay(what: string, holds: () => boolean | Promise<boolean>) {
  let most = 0;
  await until(what, async () => {
    const counts = Object.values(await bench.admin.hgetall(TALLY)).map(Number);
    most = Math.max(
      most,
      counts.reduce((sum, count) => sum + count, 0),
    );
    return holds();
  });
  return most;
}
const doneBy = (of: Child[]) => of.map((child) => child.last.done);
const allWork = (of: Child[]) => {
  const before = doneBy(of);
  return () => of.every((child, i) => child.last.done > before[i]! + 10);
};
const byPlace = (of: Child[]) => () => of.every((child) => child.last.share === null);

test('a fleet that outgrows its cap changes to places by itself, and a killed holder’s place returns', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, inFlightMax: 2 });
  const fleet = [start(), start()];
  await until('both have a share', () => fleet.every((child) => child.last.share === 1));
  fleet.push(start());
  const most = await mostUnderWay('all three take place by place', byPlace(fleet));
  expect(most).toBeLessThanOrEqual(2);
  expect(await mostUnderWay('all three get on', allWork(fleet))).toBeLessThanOrEqual(2);

  // Killed while it works, it tells nobody: its places come back by time.
  const dead = fleet.pop()!;
  await until('it holds a place', async () => Number(await bench.admin.hget(TALLY, dead.pid)) > 0);
  await dead.kill();
  await bench.admin.hdel(TALLY, dead.pid);
  expect(await mostUnderWay('the others get on', allWork(fleet))).toBeLessThanOrEqual(2);
  await until('its places are gone', async () => {
    const [time] = await bench.admin.time();
    const held = await bench.admin.zrangebyscore(keys.slots, Number(time) * 1e6, '+inf');
    return new Set(held.map((id) => id.split(':')[0])).size <= 2;
  });
});

test('the policy says exact, and takes it back: all follow, and never more than the cap is under way', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, inFlightMax: 4 });
  const fleet = [start(), start()];
  await until('both have a share', () => fleet.every((child) => child.last.share === 2));
  await setParams(bench.admin, { name }, { terms: serviceTermsText({ exact: true }) });
  const there = await mostUnderWay('both take place by place', byPlace(fleet));
  expect(there).toBeLessThanOrEqual(4);
  expect(await mostUnderWay('both get on', allWork(fleet))).toBeLessThanOrEqual(4);
  await setParams(bench.admin, { name }, { terms: serviceTermsText({ exact: false }) });
  const back = await mostUnderWay('both have shares again', () =>
    fleet.every((child) => child.last.share === 2),
  );
  expect(back).toBeLessThanOrEqual(4);
  expect(await mostUnderWay('and get on', allWork(fleet))).toBeLessThanOrEqual(4);
});

test('the policy leads over the code: exact in the code, not in the policy', async () => {
  await setParams(
    bench.admin,
    { name },
    { ...NUMBERS, inFlightMax: 3, terms: serviceTermsText({ exact: false }) },
  );
  const api = limiter({ exact: true });
  await until('it has a share', async () => {
    (await api.take()).done();
    return api.stats().share === 3;
  });
  const taken = await Promise.all([1, 2, 3, 4].map(() => api.take()));
  expect(taken.filter((each) => each.allowed).length).toBe(3);
});

test('requests that began under a share keep their part after the change, until they end', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, inFlightMax: 3 });
  const api = limiter();
  const [one, two] = await Promise.all([api.take(), api.take()]);
  await setParams(bench.admin, { name }, { terms: serviceTermsText({ exact: true }) });
  await until('places are taken', async () => {
    await api.peek();
    return api.stats().share === null;
  });
  await until('the share is what is under way', async () => {
    const [sum] = (await bench.admin.hget(keys.inFlight, ':sum'))!.split(' ');
    return sum === '2';
  });
  const next = await Promise.all([api.take(), api.take()]);
  expect(next.map((each) => each.allowed)).toEqual([true, false]);
  expect(await bench.admin.zcard(keys.slots)).toBe(1);
  one!.done();
  two!.done();
  await until('their part is free', async () => {
    const decision = await api.take();
    return decision.allowed;
  });
});
