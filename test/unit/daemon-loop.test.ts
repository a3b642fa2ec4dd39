import { expect, test, vi } from 'vitest';
import { manualClock } from '../../src/clock.js';
import { createLoop } from '../../src/daemon/loop.js';

function setUp(run: (name: string) => Promise<void>) {
  vi.useFakeTimers();
  const clock = manualClock();
  const overruns: string[] = [];
  const errors: string[] = [];
  const loop = createLoop({
    tickMs: 100,
    clock,
    tasks: () => new Map(['a', 'b'].map((name) => [name, name])),
    run,
    onError: (name, error) => errors.push(`${name}: ${(error as Error).message}`),
    onOverrun: (name) => overruns.push(name),
  });
  const advance = async (ms: number) => {
    clock.advance(ms);
    await vi.advanceTimersByTimeAsync(ms);
  };
  return { clock, loop, overruns, errors, advance };
}

test('turns of one task never overlap, and one that hangs does not hold up the others or the loop', async () => {
  const begun: Record<string, number> = { a: 0, b: 0 };
  let release = () => {};
  const hang = new Promise<void>((ok) => {
    release = ok;
  });
  const { loop, overruns, advance } = setUp(async (name) => {
    begun[name]!++;
    if (name === 'a') await hang;
  });
  loop.start();
  for (let i = 0; i < 5; i++) await advance(100);
  expect(begun).toEqual({ a: 1, b: 6 });
  expect(overruns).toEqual(['a', 'a', 'a', 'a', 'a']);
  expect(loop.alive()).toBe(true);
  release();
  await advance(100);
  expect(begun.a).toBe(2);
  await loop.stop();
  vi.useRealTimers();
});

test('an error of one turn is reported and the next turn runs', async () => {
  let runs = 0;
  const { loop, errors, advance } = setUp(async (name) => {
    runs++;
    if (name === 'a') throw new Error('no Redis');
  });
  loop.start();
  await advance(100);
  expect(errors).toEqual(['a: no Redis', 'a: no Redis']);
  expect(runs).toBe(4);
  await loop.stop();
  vi.useRealTimers();
});

test('it is alive within three periods, and stop waits for running turns and starts no more', async () => {
  let running = 0;
  let ended = 0;
  const { clock, loop, advance } = setUp(async () => {
    running++;
    await new Promise((ok) => setTimeout(ok, 50));
    ended++;
  });
  loop.start();
  expect(loop.alive()).toBe(true);
  clock.advance(301);
  expect(loop.alive()).toBe(false);
  let stopped = false;
  const stopping = loop.stop().then(() => {
    stopped = true;
  });
  await Promise.resolve();
  expect(stopped).toBe(false);
  await advance(60);
  await stopping;
  expect(ended).toBe(running);
  await advance(1000);
  expect(running).toBe(2);
  vi.useRealTimers();
});

test('after a stall it goes on at its pace and makes up no missed ticks', async () => {
  let runs = 0;
  const { clock, loop, advance } = setUp(async (name) => {
    if (name === 'a') runs++;
  });
  loop.start();
  clock.advance(1000); // the process was stopped: the wall went on, timers fire late
  await advance(100);
  const after = runs;
  await advance(50);
  expect(runs - after).toBeLessThanOrEqual(1);
  await advance(200);
  expect(runs - after).toBeLessThanOrEqual(3);
  expect(loop.alive()).toBe(true);
  await loop.stop();
  vi.useRealTimers();
});
