import { expect, test } from 'vitest';
import { createInterval } from '../../src/sense/interval.js';

const ids = (...names: string[]) => new Set(names);

test('one process that flushes just out of step: each flush is taken for one second', () => {
  const interval = createInterval();
  const spans: number[] = [];
  // Flushes at 0.99, 1.01, 2.99, 3.01 …: a tick sees none, then two.
  for (let tick = 1; tick <= 10; tick++) {
    if (tick % 2 === 1) interval.silence(tick * 1000);
    else spans.push(interval.measure(2, ids('a'), tick * 1000, 2000).spanMs);
  }
  for (const span of spans) expect(span).toBeCloseTo(2000, 6);
});

test('of three processes one is late: the counts are of two thirds of the time, then of four', () => {
  const interval = createInterval();
  for (let tick = 1; tick <= 5; tick++) {
    expect(interval.measure(3, ids('a', 'b', 'c'), tick * 1000, 1000)).toEqual({
      spanMs: 1000,
      processes: 3,
    });
  }
  const late = interval.measure(2, ids('a', 'b'), 6000, 1000);
  const after = interval.measure(4, ids('a', 'b', 'c'), 7000, 1000);
  expect(late.processes).toBe(3);
  expect(late.spanMs).toBeGreaterThan(650);
  expect(late.spanMs).toBeLessThan(720);
  expect(after.spanMs / late.spanMs).toBeGreaterThan(1.85);
});

test('a service under load flushes each 1.2 s: the spans still add up to real time', () => {
  const interval = createInterval();
  let flushed = 0;
  let spoken = 0;
  let lastMs = 0;
  for (let tick = 1; tick <= 60; tick++) {
    const now = Math.floor((tick * 1000) / 1200);
    const flushes = now - flushed;
    flushed = now;
    if (flushes === 0) interval.silence(tick * 1000);
    else {
      spoken += interval.measure(flushes, ids('a'), tick * 1000, tick * 1000 - lastMs).spanMs;
      lastMs = tick * 1000;
    }
  }
  expect(spoken / 60_000).toBeGreaterThan(0.97);
  expect(spoken / 60_000).toBeLessThan(1.03);
});

test('a process that is gone is counted for one more tick only', () => {
  const interval = createInterval();
  for (let tick = 1; tick <= 3; tick++) interval.measure(2, ids('a', 'b'), tick * 1000, 1000);
  expect(interval.measure(1, ids('a'), 4000, 1000).processes).toBe(2);
  expect(interval.measure(1, ids('a'), 5000, 1000).processes).toBe(1);
});

test('a long silence does not stretch the seconds after it', () => {
  const interval = createInterval();
  interval.measure(1, ids('a'), 1000, 1000);
  for (let tick = 2; tick < 20; tick++) interval.silence(tick * 1000);
  expect(interval.measure(1, ids('a'), 20_000, 19_000).spanMs).toBeCloseTo(1000, 6);
});
