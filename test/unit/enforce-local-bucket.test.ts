import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createInForceView } from '../../src/enforce/in-force.js';
import { createLocalBucket } from '../../src/enforce/local-bucket.js';
import { resolveOptions } from '../../src/enforce/options.js';
import type { InForce } from '../../src/redis/calls.js';

const IN_FORCE: InForce = {
  managed: true,
  epoch: 1,
  revision: 1,
  generation: 0,
  mode: 'auto',
  state: 'closed',
  gliding: false,
  rate: 100,
  capacity: 200,
  inFlightMax: 0,
  subjectRate: -1,
  subjectCapacity: 0,
};

function local(inForce: Partial<InForce> = {}, processes = 1) {
  const view = createInForceView(resolveOptions({ name: 'a' }));
  view.see({ ...IN_FORCE, ...inForce }, 0);
  view.seeProcesses(processes);
  return { view, bucket: createLocalBucket(view) };
}

function admitted(bucket: ReturnType<typeof createLocalBucket>, calls: number, nowMs: number) {
  let count = 0;
  for (let i = 0; i < calls; i++) if (bucket.take(null, 1, nowMs).allowed) count += 1;
  return count;
}

test('rate and capacity are divided by the live processes, and a fifth more', () => {
  const { bucket } = local({}, 4);
  expect(admitted(bucket, 1000, 0)).toBe(60); // 200 / 4 × 1.2
  expect(admitted(bucket, 1000, 1000)).toBe(30); // 100 / 4 × 1.2
});

test('alone, the capacity is not exceeded', () => {
  const { bucket } = local();
  expect(admitted(bucket, 1000, 0)).toBe(200);
});

test('what Redis admitted before an outage is not granted a second time', () => {
  const { bucket } = local();
  for (let i = 0; i < 200; i++) bucket.spend(1, 0);
  expect(admitted(bucket, 1000, 0)).toBe(0);
  expect(admitted(bucket, 1000, 500)).toBe(60);
});

test('in any time no more passes than the part of capacity and rate', () => {
  const call = fc.record({ afterMs: fc.nat({ max: 300 }), cost: fc.constantFrom(1, 0.5, 3) });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 200 }), fc.integer({ min: 1, max: 9 }), (calls, n) => {
      const { bucket } = local({ rate: 20, capacity: 30 }, n);
      const part = Math.min(30, Math.max(1, (30 / n) * 1.2));
      let nowMs = 0;
      let passed = 0;
      for (const { afterMs, cost } of calls) {
        nowMs += afterMs;
        if (bucket.take(null, cost, nowMs).allowed) passed += cost;
        // A cost above the part may leave a debt of at most itself.
        expect(passed).toBeLessThanOrEqual(part + ((20 / n) * 1.2 * nowMs) / 1000 + 3 + 1e-6);
      }
    }),
  );
});

test('C48: waiting exactly the retry time is enough', () => {
  const { bucket } = local({ rate: 7, capacity: 5 }, 3);
  let nowMs = 0;
  for (let i = 0; i < 1000; i++) {
    nowMs += (i * 37) % 400;
    const answer = bucket.take(null, 1, nowMs);
    if (answer.allowed) continue;
    nowMs += answer.retryAfterMs!;
    expect(bucket.take(null, 1, nowMs).allowed).toBe(true);
  }
});

test('each subject has its own part', () => {
  const { bucket } = local({ subjectRate: 5, subjectCapacity: 10 }, 2);
  let passed = 0;
  for (let i = 0; i < 50; i++) if (bucket.take('ada', 1, 0).allowed) passed += 1;
  expect(passed).toBe(6);
  expect(bucket.take('ada', 1, 0).reason).toBe('subject');
  expect(bucket.take('bob', 1, 0).allowed).toBe(true);
});

test('C17: a cost above the capacity in force never passes and has no retry time', () => {
  const { bucket } = local({ capacity: 5 });
  expect(bucket.take(null, 6, 0)).toMatchObject({
    allowed: false,
    reason: 'cost_exceeds_capacity',
    retryAfterMs: null,
  });
});

test('C07: an open breaker stays shut for its open time, then lets a trickle through', () => {
  const { view, bucket } = local({ state: 'open', rate: 0, revision: 2 });
  view.seeOpen(3000, 0);
  expect(bucket.take(null, 1, 0)).toMatchObject({ reason: 'breaker_open', retryAfterMs: 3000 });
  expect(admitted(bucket, 100, 2999)).toBe(0);
  expect(admitted(bucket, 100, 3000)).toBe(1);
  expect(admitted(bucket, 100, 4000)).toBe(1);
});

test('C07: a breaker that a person holds open stays shut', () => {
  const { view, bucket } = local({ state: 'open', rate: 0 });
  view.seeOpen(null, 0);
  expect(bucket.take(null, 1, 1e9)).toMatchObject({ reason: 'breaker_open', retryAfterMs: null });
});

test('without any numbers, nobody is denied', () => {
  const bucket = createLocalBucket(createInForceView(resolveOptions({ name: 'a' })));
  expect(admitted(bucket, 1000, 0)).toBe(1000);
});

test('C96: older numbers are ignored; a new epoch leads whatever its revision', () => {
  const { view } = local({ epoch: 5, revision: 7, rate: 70 });
  expect(view.see({ ...IN_FORCE, epoch: 5, revision: 6, rate: 60 }, 1)).toBe(false);
  expect(view.fallback().rate).toBe(70);
  expect(view.see({ ...IN_FORCE, epoch: 6, revision: 1, rate: 10 }, 2)).toBe(true);
  expect(view.fallback().rate).toBe(10);
  view.see({ ...IN_FORCE, managed: false, epoch: 0, revision: 0, rate: 1 }, 3);
  expect(view.fallback().rate).toBe(10);
});

test('the numbers of the guide are those of the code', () => {
  const guide = readFileSync(
    new URL('../../docs/guides/open-closed-or-local.md', import.meta.url),
    'utf8',
  );
  const rows = [...guide.matchAll(/^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$/gm)];
  expect(rows.length).toBeGreaterThanOrEqual(4);
  for (const [, ...texts] of rows) {
    const [processes, rate, burst, fleet] = texts.map(Number) as [number, number, number, number];
    const { bucket } = local({}, processes);
    expect([processes, admitted(bucket, 1000, 0)]).toEqual([processes, burst]);
    // An hour in steps that no bucket overflows in: what comes back is the rate.
    let count = 0;
    const stepMs = (burst / rate) * 500;
    const steps = Math.ceil(100_000 / stepMs);
    for (let i = 1; i <= steps; i++) count += admitted(bucket, 1000, i * stepMs);
    expect(count / ((steps * stepMs) / 1000)).toBeCloseTo(rate, 0);
    expect(rate * processes).toBeCloseTo(fleet, 6);
  }
});
