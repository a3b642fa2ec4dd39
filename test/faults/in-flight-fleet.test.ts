/** Twenty real processes under one in-flight cap: uneven load, load that moves, a cut, a killed one, one that is exact. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';

const SCRIPT = fileURLToPath(new URL('../support/fleet-process.mjs', import.meta.url));
const CAP = 60;
const FLEET = 20;
const TALLY = 'tally';
let server: TestRedis;
let admin: Redis;
const fleet: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
});
afterEach(async () => {
  await Promise.all(fleet.splice(0).map(end));
  await admin.flushall();
});
afterAll(() => server.stop());

function start(...more: string[]): ChildProcess {
  const child = spawn(process.execPath, [SCRIPT, server.url, 'fleet', TALLY, ...more], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin!.on('error', () => {});
  fleet.push(child);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** How many requests each process would have under way at once. */
function load(of: (index: number) => number): void {
  for (const [i, child] of fleet.entries()) child.stdin!.write(`${of(i)}\n`);
}

const underWay = async () => Number((await admin.hget(TALLY, 'all')) ?? 0);
async function of(...indexes: number[]): Promise<number> {
  const counts = await admin.hmget(TALLY, ...indexes.map((i) => String(fleet[i]!.pid)));
  return counts.reduce((sum, text) => sum + Number(text ?? 0), 0);
}
const most = async () => Number((await admin.hget(TALLY, 'most')) ?? 0);

test('the sum of twenty keeps to the cap, follows the need, and a killed one’s part comes back', async () => {
  const keys = limiterKeys({ name: 'fleet' });
  const big = { rate: 1e5, capacity: 1e5 };
  await setParams(admin, { name: 'fleet' }, { ...big, inFlightMax: CAP });
  for (let i = 0; i < FLEET; i++) start();
  load(() => 1);
  await until('all are at work', async () => (await underWay()) >= FLEET - 5, 60_000);
  const parts = async () =>
    Object.entries(await admin.hgetall(keys.inFlight)).filter(([process]) => process[0] !== ':');
  // Until then one that starts may have a place beyond the cap.
  await until('each has a part', async () => {
    const shares = (await parts()).map(([, part]) => Number(part.split(' ')[1]));
    return shares.length === FLEET && shares.every((share) => share >= 1);
  });

  // Four need far more than there is; sixteen need one each.
  load((i) => (i < 4 ? 30 : 1));
  await until('four have what sixteen leave', async () => (await of(0, 1, 2, 3)) >= 40);
  // The need moves to others.
  load((i) => (i >= 16 ? 30 : 1));
  await until('the parts follow', async () => (await of(16, 17, 18, 19)) >= 40);
  expect(await most()).toBeLessThanOrEqual(CAP);

  // Killed without a word: what it had under way ends with it, its part is free 3 s later.
  const victim = fleet[16]!;
  await end(victim);
  const lost = Number(await admin.hget(TALLY, String(victim.pid)));
  await admin.hincrby(TALLY, 'all', -lost);
  await until('three have what four had', async () => (await of(17, 18, 19)) >= 41);
  expect(await most()).toBeLessThanOrEqual(CAP);

  // One that must be exact takes all along to places; one that starts may have one beyond.
  start('exact').stdin!.write('8\n');
  await until('all hold places', async () => (await admin.zcard(keys.slots)) >= 40);
  await until('it has places too', async () => (await of(FLEET)) >= 4);
  expect(await most()).toBeLessThanOrEqual(CAP + 1);

  await setParams(admin, { name: 'fleet' }, { ...big, inFlightMax: CAP / 2 });
  await until(
    'a cut holds once what began before has ended',
    async () => (await underWay()) <= CAP / 2,
  );
  await admin.hdel(TALLY, 'most');
  load(() => 5);
  await until('the cut cap is used', async () => (await underWay()) >= CAP / 2 - 3);
  expect(await most()).toBeLessThanOrEqual(CAP / 2);
}, 240_000);
