/** Deadlines on one timer: each expires once, in order, however they were added; who was answered never does. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDeadlines } from '../../src/enforce/deadlines.js';

let nowMs = 0;
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };

beforeEach(() => {
  nowMs = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Timers fire on the way, and the clock goes with them. */
function pass(ms: number) {
  for (let i = 0; i < ms; i++) {
    nowMs += 1;
    vi.advanceTimersByTime(1);
  }
}

test('each expires at its own time, in order, once', () => {
  const deadlines = createDeadlines(clock);
  const expired: [number, number][] = [];
  for (const atMs of [50, 20, 70, 20, 600, 5]) {
    deadlines.add(atMs, () => expired.push([atMs, nowMs]));
  }
  pass(1_000);
  expect(expired.map(([atMs]) => atMs)).toEqual([5, 20, 20, 50, 70, 600]);
  for (const [atMs, at] of expired) {
    expect(at).toBeGreaterThanOrEqual(atMs);
    expect(at).toBeLessThanOrEqual(atMs + 2);
  }
});

test('who was answered never expires, first, last or between; then no timer is left', () => {
  const deadlines = createDeadlines(clock);
  const expired: string[] = [];
  const names = ['a', 'b', 'c', 'd'];
  const waiting = names.map((name) => deadlines.add(50, () => expired.push(name)));
  for (const i of [0, 2, 3]) deadlines.end(waiting[i]!);
  deadlines.end(waiting[0]!);
  expect(vi.getTimerCount()).toBe(1);
  pass(100);
  expect(expired).toEqual(['b']);
  expect(waiting.every(({ over }) => over)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test('one that is added at an expiry keeps nobody waiting who is due before it', () => {
  const deadlines = createDeadlines(clock);
  const expired: [string, number][] = [];
  deadlines.add(10, () => deadlines.add(200, () => expired.push(['late', nowMs])));
  deadlines.add(20, () => expired.push(['soon', nowMs]));
  pass(300);
  expect(expired.map(([name]) => name)).toEqual(['soon', 'late']);
  expect(expired[0]![1]).toBeLessThanOrEqual(22);
});

test('one that is added at an expiry, and one while the loop was busy, have their time', () => {
  const deadlines = createDeadlines(clock);
  const expired: string[] = [];
  deadlines.add(10, () => {
    expired.push('first');
    deadlines.add(nowMs + 10, () => expired.push('second'));
  });
  // The loop is busy for longer than that: what is answered then is in time.
  const answered = deadlines.add(30, () => expired.push('answered'));
  nowMs = 100;
  vi.advanceTimersToNextTimer();
  deadlines.end(answered);
  pass(30);
  expect(expired).toEqual(['first', 'second']);
  expect(vi.getTimerCount()).toBe(0);
});
