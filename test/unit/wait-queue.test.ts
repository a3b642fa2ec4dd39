/** Waiting in virtual time against one bucket: order, herd, rate 0, changes, aborts, time. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualClock } from '../../src/clock.js';
import type { TakeDecision } from '../../src/enforce/decision.js';
import { createWaitQueue, type WaitWish } from '../../src/enforce/wait-queue.js';

interface Wish extends WaitWish {
  id: string;
}

/** A bucket in virtual time, and a queue before it; every question takes 1 ms. */
function setUp(start: {
  rate: number;
  capacity: number;
  tokens?: number;
  tickMs?: number;
  /** Between two questions of one batch. */
  askMs?: number;
  /** What chance says; 0.5. */
  chance?: number;
}) {
  const clock = manualClock();
  const timers: { atMs: number; fn: () => void }[] = [];
  let { rate, tokens = start.capacity } = start;
  const { capacity } = start;
  let refilledMs = 0;
  let state: 'closed' | 'open' = 'closed';
  const asked: { id: string; atMs: number }[] = [];
  const returned: string[] = [];
  const admitted: string[] = [];
  const failed: [id: string, why: string][] = [];
  /** Subjects that are denied, until when. */
  const shut = new Map<string, number>();

  const refill = () => {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(capacity, tokens + ((nowMs - refilledMs) / 1000) * rate);
    refilledMs = nowMs;
  };
  function answer({ subject, cost }: Wish): Partial<TakeDecision> {
    refill();
    const until = subject === null ? undefined : shut.get(subject);
    if (cost > capacity)
      return { allowed: false, reason: 'cost_exceeds_capacity', limit: 'cost', retryAfterMs: null };
    if (state === 'open')
      return { allowed: false, reason: 'breaker_open', limit: 'breaker', retryAfterMs: null };
    if (until !== undefined && until > clock.monotonicMs()) {
      const retryAfterMs = until - clock.monotonicMs();
      return { allowed: false, reason: 'subject', limit: 'subject', retryAfterMs };
    }
    if (tokens + 1e-9 < cost) {
      const retryAfterMs = rate > 0 ? Math.ceil(((cost - tokens) / rate) * 1000) : null;
      return { allowed: false, reason: 'rate', limit: 'rate', retryAfterMs };
    }
    tokens -= cost;
    return { allowed: true, reason: 'ok', limit: null, retryAfterMs: 0 };
  }

  const after = (ms: number, fn: () => void) => {
    const timer = { atMs: clock.monotonicMs() + ms, fn };
    timers.push(timer);
    return () => {
      const at = timers.indexOf(timer);
      if (at >= 0) timers.splice(at, 1);
    };
  };
  const queue = createWaitQueue<Wish>({
    ask(wish) {
      clock.advance(start.askMs ?? 0);
      asked.push({ id: wish.id, atMs: clock.monotonicMs() });
      // Decided now, heard of 1 ms later.
      const decision = { ...answer(wish), subject: wish.id } as TakeDecision;
      return new Promise((ok) => after(1, () => ok(decision)));
    },
    giveBack: ({ subject }) => void returned.push(subject!),
    denied: (_wish, last) => new Error(`denied: ${last?.reason ?? 'not asked'}`),
    // Time passes while the queue looks at it, if the test says so.
    clock: {
      ...clock,
      monotonicMs() {
        clock.advance(start.tickMs ?? 0);
        return clock.monotonicMs();
      },
    },
    after,
    random: () => start.chance ?? 0.5,
  });

  const settleTurn = () => new Promise((ok) => setImmediate(ok));
  return {
    queue,
    asked,
    admitted,
    failed,
    returned,
    shut,
    setRate(next: number) {
      refill();
      rate = next;
      queue.changed();
    },
    trip(next: 'closed' | 'open') {
      state = next;
      queue.changed();
    },
    wait(id: string, wish: Partial<Wish> = {}, timeoutMs = 60_000, signal?: AbortSignal) {
      const full = { id, subject: null, cost: 1, priority: 'default', ...wish } as Wish;
      queue.wait(full, timeoutMs, signal).then(
        () => void admitted.push(id),
        (error: Error) => void failed.push([id, error.message]),
      );
    },
    nowMs: () => clock.monotonicMs(),
    async run(ms: number) {
      const endMs = clock.monotonicMs() + ms;
      await settleTurn();
      for (;;) {
        timers.sort((a, b) => a.atMs - b.atMs);
        const next = timers[0];
        if (!next || next.atMs > endMs) break;
        timers.shift();
        clock.advance(Math.max(0, next.atMs - clock.monotonicMs()));
        next.fn();
        await settleTurn();
      }
      clock.advance(endMs - clock.monotonicMs());
    },
  };
}

const ids = (count: number, name = 'w') => Array.from({ length: count }, (_, i) => `${name}${i}`);

test('a token that comes between two questions of one batch is for who came first', async () => {
  for (const askMs of [0.3, 0.6, 1, 3]) {
    const at = setUp({ rate: 100, capacity: 8, askMs });
    for (const id of ids(40)) at.wait(id);
    await at.run(2_000);
    expect(at.admitted).toEqual(ids(40));
    expect(at.failed).toEqual([]);
  }
});

test('first come, first served; one at the head asks, at most as often as tokens come', async () => {
  const at = setUp({ rate: 10, capacity: 1, tokens: 0 });
  for (const id of ids(50)) at.wait(id);
  await at.run(2_050);
  expect(at.admitted).toEqual(ids(at.admitted.length));
  expect(at.admitted.length).toBeGreaterThanOrEqual(17);
  expect(at.admitted.length).toBeLessThanOrEqual(20);
  // No herd: 50 wait, and for each admission there are about two questions, never fifty.
  expect(at.asked.length).toBeLessThanOrEqual(3 * at.admitted.length + 3);
});

test('a pause that ends between two looks at the clock still wakes', async () => {
  const at = setUp({ rate: 1000, capacity: 1, tokens: 0, tickMs: 0.6 });
  for (const id of ids(40)) at.wait(id, { subject: Number(id.slice(1)) % 2 ? 'a' : null });
  at.shut.set('a', 30);
  await at.run(2_000);
  expect([...at.admitted].sort()).toEqual(ids(40).sort());
});

test('a full bucket is not waited for one round trip at a time', async () => {
  const at = setUp({ rate: 1, capacity: 500 });
  for (const id of ids(400)) at.wait(id);
  await at.run(30);
  expect(at.admitted).toEqual(ids(400));
});

test('priorities first, within one the order of arrival; a big one is not starved by small ones', async () => {
  const at = setUp({ rate: 10, capacity: 5, tokens: 0 });
  at.wait('late', { priority: 'sheddable' });
  at.wait('big', { cost: 5 });
  for (const id of ids(5, 'small')) at.wait(id, { cost: 0.5 });
  await at.run(100);
  at.wait('urgent', { priority: 'critical' });
  await at.run(5_000);
  expect(at.admitted).toEqual(['urgent', 'big', ...ids(5, 'small'), 'late']);
});

test('who waits for its own subject does not hold up the others', async () => {
  const at = setUp({ rate: 100, capacity: 100 });
  at.shut.set('a', 700);
  at.wait('a0', { subject: 'a' });
  at.wait('a1', { subject: 'a' });
  for (const id of ids(5, 'b')) at.wait(id, { subject: 'b' });
  await at.run(100);
  expect(at.admitted).toEqual(ids(5, 'b'));
  await at.run(1_000);
  expect(at.admitted.slice(5)).toEqual(['a0', 'a1']);
  expect(at.asked.filter(({ id }) => id === 'a1').length).toBeLessThanOrEqual(2);
});

test('C57: at rate 0 and with the breaker open nobody asks in a loop; a change wakes at once', async () => {
  const at = setUp({ rate: 0, capacity: 1, tokens: 0 });
  for (const id of ids(100)) at.wait(id);
  await at.run(30_000);
  expect(at.admitted).toEqual([]);
  expect(at.asked.length).toBeLessThanOrEqual(8);
  at.setRate(1000);
  await at.run(50);
  expect(at.admitted.length).toBeGreaterThan(10);
  at.trip('open');
  const [asked, done] = [at.asked.length, at.admitted.length];
  await at.run(9_000);
  expect(at.asked.length - asked).toBeLessThanOrEqual(34);
  expect(at.admitted.length).toBeLessThanOrEqual(done + 32);
  at.trip('closed');
  await at.run(1_000);
  expect(at.admitted).toEqual(ids(100));
});

test('C57: processes that were denied alike come back apart: up to a tenth later, never before, 100 ms at most', async () => {
  const again = async (rate: number, chance: number) => {
    const at = setUp({ rate, capacity: 1, tokens: 0, chance });
    at.wait('one');
    await at.run(10_000);
    expect(at.admitted).toEqual(['one']);
    return at.asked[1]!.atMs - 1;
  };
  // Told after 1 ms that its token comes in half a second, or in four.
  expect(await Promise.all([0, 0.5, 0.999].map((chance) => again(2, chance)))).toEqual([
    500, 525, 550,
  ]);
  expect(await Promise.all([0, 0.5, 0.999].map((chance) => again(0.25, chance)))).toEqual([
    4000, 4050, 4100,
  ]);
});

test('C57: 50 of 100 abort while the rate is raised, lowered and 0: they leave at once, what was theirs goes on', async () => {
  const at = setUp({ rate: 20, capacity: 5 });
  const stops = ids(100).map((id) => {
    const stop = new AbortController();
    at.wait(id, {}, 60_000, stop.signal);
    return stop;
  });
  await at.run(400);
  at.setRate(100);
  const before = new Set(at.admitted);
  for (const [i, stop] of stops.entries()) if (i % 2 === 1) stop.abort(new Error('gone'));
  await at.run(0);
  const gone = at.failed.map(([id]) => id);
  expect(at.failed.every(([, why]) => why === 'gone')).toBe(true);
  expect(gone).toEqual(ids(100).filter((id, i) => i % 2 === 1 && !before.has(id)));
  at.setRate(0);
  await at.run(3_000);
  at.setRate(2);
  await at.run(3_000);
  at.setRate(50);
  await at.run(3_000);
  const left = ids(100).filter((id) => !gone.includes(id));
  expect([...at.admitted].sort()).toEqual([...left].sort());
  expect(at.queue.size).toBe(0);
});

test('C57: a token that comes for one who has just gone goes to the next alike, else back', async () => {
  const at = setUp({ rate: 0.001, capacity: 10, tokens: 1 });
  const stop = new AbortController();
  at.wait('gone', {}, 1_000, stop.signal);
  at.wait('heir', {}, 1_000);
  stop.abort(new Error('gone'));
  await at.run(500);
  expect(at.admitted).toEqual(['heir']);
  expect(at.returned).toEqual([]);

  const other = setUp({ rate: 0.001, capacity: 10, tokens: 1 });
  const leave = new AbortController();
  other.wait('gone', {}, 1_000, leave.signal);
  other.wait('dearer', { cost: 2 }, 500);
  leave.abort(new Error('gone'));
  await other.run(1_000);
  expect(other.admitted).toEqual([]);
  expect(other.returned).toEqual(['gone']);
});

test('C57: the longest wait is honoured, with the denial that held it up; a cost above the capacity ends at once', async () => {
  const at = setUp({ rate: 1, capacity: 2, tokens: 0 });
  at.wait('first', { cost: 2 }, 5_000);
  at.wait('short', {}, 500);
  at.wait('never', { cost: 3, priority: 'critical' }, 5_000);
  await at.run(3);
  expect(at.failed).toEqual([['never', 'denied: cost_exceeds_capacity']]);
  await at.run(496);
  expect(at.failed.length).toBe(1);
  await at.run(2);
  expect(at.failed[1]).toEqual(['short', 'denied: rate']);
  await at.run(3_000);
  expect(at.admitted).toEqual(['first']);
});

test('a place in flight that is given back wakes the head; close rejects all', async () => {
  const at = setUp({ rate: 1, capacity: 1, tokens: 0 });
  at.queue.freed();
  at.wait('a');
  at.wait('b');
  await at.run(10);
  const asked = at.asked.length;
  at.queue.freed();
  await at.run(10);
  expect(at.asked.length).toBe(asked);
  at.queue.close(new Error('closed'));
  await at.run(0);
  expect(at.failed).toEqual([
    ['a', 'closed'],
    ['b', 'closed'],
  ]);
  expect(at.queue.size).toBe(0);
});

test('whatever comes and goes: order within a priority, nobody twice, nobody past the limit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ rate: fc.constantFrom(1, 20, 300), capacity: fc.constantFrom(1, 5, 50) }),
      fc.array(
        fc.record({
          gapMs: fc.integer({ min: 0, max: 200 }),
          priority: fc.constantFrom('critical' as const, 'default' as const, 'sheddable' as const),
          stopMs: fc.option(fc.integer({ min: 0, max: 400 })),
        }),
        { minLength: 1, maxLength: 40 },
      ),
      async (limit, arrivals) => {
        const at = setUp(limit);
        const stops: { atMs: number; stop: AbortController }[] = [];
        for (const [i, { gapMs, priority, stopMs }] of arrivals.entries()) {
          await at.run(gapMs);
          const stop = new AbortController();
          at.wait(`${priority}:${i}`, { priority }, 120_000, stop.signal);
          if (stopMs !== null) stops.push({ atMs: at.nowMs() + stopMs, stop });
          for (const each of stops) if (each.atMs <= at.nowMs()) each.stop.abort(new Error('gone'));
        }
        const spentMs = at.nowMs();
        const most = limit.capacity + (limit.rate * spentMs) / 1000;
        expect(at.admitted.length).toBeLessThanOrEqual(Math.floor(most + 1e-6));
        await at.run(100_000);
        expect(new Set(at.admitted).size).toBe(at.admitted.length);
        expect(at.admitted.length + at.failed.length).toBe(arrivals.length);
        for (const priority of ['critical', 'default', 'sheddable']) {
          const order = at.admitted
            .filter((id) => id.startsWith(priority))
            .map((id) => Number(id.split(':')[1]));
          expect(order).toEqual([...order].sort((a, b) => a - b));
        }
      },
    ),
    { numRuns: 60 },
  );
});
