/** Many takes behind one signal, and waits that are longer than a timer: told once, left without a trace. */
import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { onAbort } from '../../src/enforce/abort.js';
import { after, pause } from '../../src/enforce/pacing.js';

const listeners = ({ signal }: AbortController) => getEventListeners(signal, 'abort').length;

test('a thousand who follow one signal are one listener, told in order and once', () => {
  const stop = new AbortController();
  const told: number[] = [];
  for (let i = 0; i < 1_000; i++) onAbort(stop.signal, () => told.push(i));
  expect(listeners(stop)).toBe(1);
  stop.abort();
  expect(told).toEqual(Array.from({ length: 1_000 }, (_each, i) => i));
  stop.abort();
  expect(told).toHaveLength(1_000);
});

test('who has left is not told, and the last one takes the listener along', () => {
  const stop = new AbortController();
  const told: string[] = [];
  const [a, b] = ['a', 'b'].map((name) => onAbort(stop.signal, () => told.push(name)));
  a!();
  a!();
  expect(listeners(stop)).toBe(1);
  b!();
  expect(listeners(stop)).toBe(0);
  const c = onAbort(stop.signal, () => told.push('c'));
  b!();
  expect(listeners(stop)).toBe(1);
  stop.abort();
  c();
  expect(told).toEqual(['c']);
});

test('one that leaves another while it is told keeps it from being told no more than it was', () => {
  const stop = new AbortController();
  const told: string[] = [];
  const leave = [
    onAbort(stop.signal, () => {
      told.push('a');
      for (const each of leave) each();
    }),
    onAbort(stop.signal, () => told.push('b')),
  ];
  stop.abort();
  expect(told).toEqual(['a', 'b']);
  expect(listeners(stop)).toBe(0);
});

test('a pause ends after its time or with the reason, and leaves no listener', async () => {
  const stop = new AbortController();
  await pause(1, stop.signal);
  expect(listeners(stop)).toBe(0);
  const paused = pause(60_000, stop.signal);
  stop.abort(new Error('gone'));
  await expect(paused).rejects.toThrow('gone');
  await expect(pause(1, stop.signal)).rejects.toThrow('gone');
});

test('a wait of more than 24 days does not end at once, as a timer of its own would', () => {
  vi.useFakeTimers();
  try {
    const ended = vi.fn();
    const cancel = after(1e12, ended);
    vi.advanceTimersByTime(86_400_000);
    expect(ended).not.toHaveBeenCalled();
    cancel();
  } finally {
    vi.useRealTimers();
  }
});
