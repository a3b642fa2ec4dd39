/** What stands around the question to a source: its deadline, and what does not count against it. Stage: tests. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLog } from '../../src/log.js';
import { guarded } from '../../src/sense/guarded.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const after = (ms: number) => new Promise<void>((ok) => setTimeout(ok, ms));

function source(load: () => Promise<unknown>, askMs: number) {
  return guarded({
    ...{
      name: 'a server',
      source: 'mysql',
      deadlineMs: 800,
      log: createLog({ level: 'silent' }),
      load,
    },
    ask: async () => {
      await after(askMs);
      return { seen: 1 };
    },
    missingFor: () => ({ kind: 'missing', reason: 'timeout', detail: 'late' }),
  });
}

test('a driver that is slow to load is no server that is slow to answer', async () => {
  const asked = source(() => after(3000), 100).ask();
  await vi.advanceTimersByTimeAsync(3100);
  expect(await asked).toEqual({ seen: 1 });
});

test('what cannot be loaded is told by the question; what never is loaded holds nobody up', async () => {
  const refused = source(() => Promise.reject(new Error('not installed')), 100).ask();
  await vi.advanceTimersByTimeAsync(100);
  expect(await refused).toEqual({ seen: 1 });
  const stuck = source(() => new Promise(() => {}), 900).ask();
  await vi.advanceTimersByTimeAsync(10_800);
  expect(await stuck).toMatchObject({ kind: 'missing', reason: 'timeout' });
});

test('it is loaded once, before the first question', async () => {
  const load = vi.fn(() => after(10));
  const one = source(load, 10);
  for (let i = 0; i < 3; i++) {
    const asked = one.ask();
    await vi.advanceTimersByTimeAsync(20);
    expect(await asked).toEqual({ seen: 1 });
  }
  expect(load).toHaveBeenCalledTimes(1);
});
