import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createInFlight, SHARE_LIFE_MS, type Slot } from '../../src/enforce/in-flight.js';

test('places are given up to the share, and given back', () => {
  const inFlight = createInFlight(true);
  inFlight.setShare(2, 0);
  const first = inFlight.reserve(1);
  const second = inFlight.reserve(2);
  expect(inFlight.reserve(3)).toBe('full');
  expect(inFlight.inUse).toBe(2);
  inFlight.release(first as Slot);
  inFlight.release(first as Slot);
  expect(inFlight.inUse).toBe(1);
  expect(inFlight.reserve(4)).toMatchObject({ startedMs: 4 });
  expect(inFlight.oldestMs(10)).toBe(8);
  inFlight.release(second as Slot);
  expect(inFlight.oldestMs(10)).toBe(6);
});

test('a share older than its life by the monotonic clock is not used', () => {
  const inFlight = createInFlight(true);
  expect(inFlight.reserve(0)).toBe('stale');
  inFlight.setShare(5, 100);
  expect(inFlight.reserve(100 + SHARE_LIFE_MS)).not.toBe('stale');
  expect(inFlight.reserve(101 + SHARE_LIFE_MS)).toBe('stale');
  expect(inFlight.inUse).toBe(1);
});

test('what was answered before this process reported completions is no share', () => {
  const inFlight = createInFlight(false);
  inFlight.setShare(Number.POSITIVE_INFINITY, 100);
  inFlight.setReports();
  expect(inFlight.reserve(101)).toBe('stale');
});

test('need is the peak and what the cap denied, remembered for one more turn', () => {
  const inFlight = createInFlight(true);
  inFlight.setShare(3, 0);
  const slots = [1, 2, 3].map((at) => inFlight.reserve(at) as Slot);
  inFlight.reserve(4);
  inFlight.reserve(4);
  for (const slot of slots) inFlight.release(slot);
  expect(inFlight.takeNeed()).toBe(5);
  expect(inFlight.takeNeed()).toBe(5);
  expect(inFlight.takeNeed()).toBe(1);
});

test('what nobody completes is given back after the limit, and counted', () => {
  const inFlight = createInFlight(true);
  inFlight.setShare(10, 0);
  const old = inFlight.reserve(0) as Slot;
  inFlight.reserve(500);
  inFlight.sweep(1001, 1000);
  expect(inFlight.inUse).toBe(1);
  expect(inFlight.abandoned).toBe(1);
  inFlight.release(old);
  expect(inFlight.inUse).toBe(1);
});

test('any order of admissions and completions keeps count and oldest', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (steps) => {
      const inFlight = createInFlight(true);
      inFlight.setShare(8, 0);
      const model: { slot: Slot; at: number }[] = [];
      steps.forEach((step, at) => {
        if (step < 5) {
          const slot = inFlight.reserve(at);
          if (model.length >= 8) expect(slot).toBe('full');
          else model.push({ slot: slot as Slot, at });
        } else if (model.length > 0) {
          const [gone] = model.splice(step % model.length, 1);
          inFlight.release(gone!.slot);
        }
        expect(inFlight.inUse).toBe(model.length);
        expect(inFlight.oldestMs(at)).toBe(model.length ? at - model[0]!.at : 0);
      });
    }),
  );
});
