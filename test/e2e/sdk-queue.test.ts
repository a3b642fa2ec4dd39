import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { afterEach, expect, test } from 'vitest';
import { createQueueGate, FlyballDeniedError, type Limiter } from '../../src/index.js';
import type { ParamChange } from '../../src/redis/params.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const WORKER = fileURLToPath(new URL('../../examples/bullmq/worker.mjs', import.meta.url));
const bench = sdkBench('queue');
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

async function limiter(change: ParamChange): Promise<Limiter> {
  const made = bench.limiter();
  await setParams(bench.admin, made, change);
  return made;
}

test('jobs held up by one limit get times one after another, at its rate', async () => {
  const api = await limiter({ rate: 0.01, capacity: 10, reserveSheddable: 0.5 });
  const gate = createQueueGate(api, {
    costs: { critical: 0.5, sheddable: 2 },
    maxDelayMs: 6_000_000,
  });
  for (let i = 0; i < 10; i++) expect((await gate.ask()).action).toBe('process');
  const delays: number[] = [];
  for (let i = 0; i < 5; i++) {
    const answer = await gate.ask();
    delays.push(answer.action === 'delay' ? answer.delayMs : 0);
  }
  const gaps = delays.slice(1).map((ms, i) => ms - delays[i]!);
  expect(delays[0]).toBeGreaterThan(0);
  expect(delays[0]).toBeLessThanOrEqual(100_000);
  for (const gap of gaps) expect(gap).toBeGreaterThan(40_000);
  expect(delays[4]).toBeGreaterThan(300_000);
  expect(delays[4]).toBeLessThanOrEqual(500_000);
  // Another priority has a line of its own; a dearer job is spaced by its cost.
  const shed = [
    await gate.ask({ priority: 'sheddable' }),
    await gate.ask({ priority: 'sheddable' }),
  ];
  const [first, second] = shed.map((each) => (each.action === 'delay' ? each.delayMs : 0));
  expect(second! - first!).toBeGreaterThan(100_000);
});

test('a subject that is short does not delay the others; other numbers begin anew', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, subjectRate: 0.1, subjectCapacity: 1 });
  const gate = createQueueGate(api, { maxDelayMs: 5_000 });
  expect((await gate.ask({ subject: 'a' })).action).toBe('process');
  expect(await gate.ask({ subject: 'a' })).toMatchObject({ action: 'delay', delayMs: 5_000 });
  expect((await gate.ask({ subject: 'b' })).action).toBe('process');
  await setParams(bench.admin, api, { state: 'open', openUntil: -1 });
  // Nobody knows when: the longest delay.
  await until('it is open', async () => {
    const { decision } = await gate.ask({ subject: 'c' });
    return decision.limit === 'breaker' && decision.retryAfterMs === null;
  });
  expect(await gate.ask({ subject: 'd' })).toMatchObject({ action: 'delay', delayMs: 5_000 });
});

test('what no delay mends is an error; misuse is told at creation', async () => {
  const api = await limiter({ rate: 10, capacity: 5 });
  const gate = createQueueGate(api, { costs: { sheddable: 6 } });
  await expect(gate.ask({ priority: 'sheddable' })).rejects.toBeInstanceOf(FlyballDeniedError);
  await expect(gate.ask({ cost: -1 })).rejects.toThrow('cost is -1');
  expect(() => createQueueGate(api, { costs: { default: 0 } })).toThrow('cost is 0');
  expect(() => createQueueGate(api, { maxDelayMs: 0 })).toThrow('maxDelayMs is 0');
  expect(() => createQueueGate({} as Limiter)).toThrow('Give what createLimiter() returned');
});

test('BullMQ: two workers of the example lose no job, double none, keep the rate and the priorities', async () => {
  const limit = { rate: 60, capacity: 10, reserveSheddable: 0.4 };
  await setParams(bench.admin, { name: 'mails' }, limit);
  const connection = bench.server.client({ maxRetriesPerRequest: null });
  const queue = new Queue('mails', { connection });
  await queue.obliterate({ force: true });
  const sent: string[] = [];
  const errors: string[] = [];
  for (let i = 0; i < 2; i++) {
    const child = spawn(process.execPath, [WORKER], {
      env: { ...process.env, FLYBALL_REDIS_URL: bench.server.url },
    });
    children.push(child);
    createInterface({ input: child.stdout }).on('line', (line) => sent.push(JSON.parse(line).sent));
    createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  }
  await until('both work', async () => (await queue.getWorkersCount()) === 2);
  const kinds = [1, 3, 10];
  await queue.addBulk(
    Array.from({ length: 90 }, (_, i) => ({
      name: 'mail',
      data: {},
      opts: { priority: kinds[i % 3]!, attempts: 3 },
    })),
  );
  await until('all are sent', () => sent.length >= 90, 40_000);
  const idle = { active: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0, completed: 90 };
  await until('the queue is empty', async () => (await queue.getJobCounts()).completed === 90);
  expect(await queue.getJobCounts()).toMatchObject(idle);
  for (const child of children.splice(0)) {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(0);
  }
  expect(errors).toEqual([]);
  expect(sent).toHaveLength(90);
  expect(new Set(sent).size).toBe(90);

  const jobs = (await queue.getCompleted()).sort((a, b) => a.finishedOn! - b.finishedOn!);
  expect(jobs.every(({ attemptsMade }) => attemptsMade === 1)).toBe(true);
  expect(jobs.some(({ attemptsStarted }) => attemptsStarted > 1)).toBe(true);
  const begunMs = Math.min(...jobs.map(({ processedOn }) => processedOn!)) - 1;
  let tokens = 0;
  for (const job of jobs) {
    tokens += job.opts.priority === 10 ? 2 : 1;
    const most = limit.capacity + ((job.finishedOn! - begunMs) / 1000) * limit.rate;
    expect(tokens).toBeLessThanOrEqual(most + 1e-6);
  }
  const meanOf = (priority: number) => {
    const own = jobs.filter(({ opts }) => opts.priority === priority);
    return own.reduce((sum, { finishedOn }) => sum + finishedOn! - begunMs, 0) / own.length;
  };
  expect(meanOf(1)).toBeLessThan(meanOf(3));
  expect(meanOf(3)).toBeLessThan(meanOf(10));
  await queue.close();
});
