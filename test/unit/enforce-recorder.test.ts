import { expect, test } from 'vitest';
import { createPoolGauge } from '../../src/enforce/pool-gauge.js';
import { createRecorder } from '../../src/enforce/recorder.js';
import { binOf } from '../../src/histogram.js';

function drained(recorder: ReturnType<typeof createRecorder>) {
  const fields: Record<string, number> = {};
  recorder.drain((field, count) => {
    fields[field] = (fields[field] ?? 0) + count;
  });
  return fields;
}

test('counts by outcome, code, upstream and generation, once', () => {
  const recorder = createRecorder();
  for (let i = 0; i < 3; i++) {
    recorder.offered();
    recorder.admitted();
  }
  recorder.offered();
  recorder.denied('rate');
  recorder.outcome('ok', 10, 2, { upstream: 'pay', dbWaitMs: 5 });
  recorder.outcome('failed', 20, 2, { upstream: 'pay', code: 'SYSTEMERROR' });
  recorder.outcome('timed_out', 30, 1);
  recorder.outcome('cancelled', 40, 2);
  expect(drained(recorder)).toEqual({
    off: 4,
    adm: 3,
    'd:rate': 1,
    ok: 1,
    err: 1,
    to: 1,
    can: 1,
    [`l:${binOf(10)}`]: 1,
    [`l:${binOf(20)}`]: 1,
    [`l:${binOf(30)}`]: 1,
    [`lf:${binOf(20)}`]: 1,
    [`lf:${binOf(30)}`]: 1,
    ls: 60_000,
    [`w:${binOf(5)}`]: 1,
    ws: 5000,
    'c:SYSTEMERROR': 1,
    'c:TIMEOUT': 1,
    'uo:pay': 1,
    'ue:pay': 1,
    'uc:pay:SYSTEMERROR': 1,
    'go:2': 1,
    'ge:2': 1,
    'ge:1': 1,
    'gc:2:SYSTEMERROR': 1,
    'gc:1:TIMEOUT': 1,
  });
  expect(drained(recorder)).toEqual({});
});

test('all that is drained are whole, finite numbers > 0', () => {
  const recorder = createRecorder();
  recorder.outcome('ok', 0.0004, 0, { dbWaitMs: Number.NaN });
  recorder.outcome('ok', 12.3456789, 0, { dbWaitMs: -1 });
  recorder.outcome('failed', 3, 0, { code: 'a:b c' });
  for (const [field, count] of Object.entries(drained(recorder))) {
    expect(Number.isInteger(count) && count > 0, field).toBe(true);
    expect(field.startsWith('w')).toBe(false);
  }
});

test('names that callers make up are bounded; the rest counts as other', () => {
  const recorder = createRecorder();
  for (let i = 0; i < 10_000; i++) recorder.outcome('failed', 1, 0, { code: `E${i}` });
  const fields = drained(recorder);
  expect(Object.keys(fields).length).toBeLessThan(80);
  const codes = Object.entries(fields).filter(([field]) => field.startsWith('c:'));
  expect(codes.reduce((sum, [, count]) => sum + count, 0)).toBe(10_000);
});

test('routes are told apart once there are two: answers and time of each, never of denials or cancelled calls', () => {
  const recorder = createRecorder();
  recorder.outcome('ok', 10, 0, { route: 'GET /ping' });
  recorder.denied('rate');
  expect(Object.keys(drained(recorder)).filter((field) => field.startsWith('r'))).toEqual([]);
  recorder.outcome('ok', 10, 0, { route: 'GET /ping' });
  recorder.outcome('ok', 30, 0, { route: 'GET /ping' });
  recorder.outcome('failed', 400, 0, { route: 'GET /report/:id' });
  recorder.outcome('cancelled', 9000, 0, { route: 'GET /report/:id' });
  expect(drained(recorder)).toMatchObject({
    'rn:GET__ping': 2,
    'rs:GET__ping': 40_000,
    'rn:GET__report__id': 1,
    'rs:GET__report__id': 400_000,
  });
  expect(Object.keys(drained(recorder))).toEqual([]);
});

test('eight routes have a name, whatever callers make up; the rest is one, flush after flush', () => {
  const recorder = createRecorder();
  for (const flush of [1, 2]) {
    for (let i = 0; i < 1000; i++) recorder.outcome('ok', 1, 0, { route: `GET /${i}` });
    recorder.outcome('ok', 1, 0, { route: 7 as never });
    const fields = drained(recorder);
    const counts = Object.entries(fields).filter(([field]) => field.startsWith('rn:'));
    expect(counts.length, `flush ${flush}`).toBe(9);
    expect(fields['rn:other']).toBe(993);
  }
});

test('the pool gauge is the mean since the last flush, the last number while fresh, then unknown', () => {
  const gauge = createPoolGauge();
  expect(gauge.take(0)).toBeNull();
  gauge.report(2, 100);
  gauge.report(4, 200);
  gauge.report(Number.NaN, 250);
  expect(gauge.take(1000)).toBe(3);
  expect(gauge.take(2000)).toBe(4);
  expect(gauge.take(5300)).toBeNull();
  gauge.report(() => 7, 0);
  expect(gauge.take(9000)).toBe(7);
});
