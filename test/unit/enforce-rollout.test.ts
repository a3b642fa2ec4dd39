/** Whom a rollout has reached: the same in every language, only ever more, and nobody by accident. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRollout, rolloutPart } from '../../src/enforce/rollout.js';
import { parseRollout, type Rollout, rolloutText, rolloutWords } from '../../src/redis/rollout.js';

const golden: { limiter: string; subject: string; part: number }[] = JSON.parse(
  readFileSync(new URL('../contract/rollout.json', import.meta.url), 'utf8'),
);
const reach = (rollout: Rollout, random?: () => number) =>
  compileRollout('checkout', rolloutText(rollout), random);
const users = Array.from({ length: 10_000 }, (_, i) => `user:${i}`);

test('a subject’s part is that of the golden file, made by another language', () => {
  expect(golden.length).toBeGreaterThan(20);
  for (const { limiter, subject, part } of golden) {
    expect([subject, rolloutPart(limiter, subject)]).toEqual([subject, part]);
  }
});

describe('a raised percentage only ever adds', () => {
  test('whom a share reaches, every larger one reaches too', () => {
    const percent = fc.integer({ min: 0, max: 10_000 }).map((parts) => parts / 100);
    fc.assert(
      fc.property(fc.string(), percent, percent, (subject, a, b) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        const before = reach({ percent: low })?.reaches(subject) ?? true;
        const after = reach({ percent: high })?.reaches(subject) ?? true;
        expect(!before || after).toBe(true);
      }),
    );
  });

  test('1 %, 10 %, 100 % reach about that many, and none by 0 %', () => {
    const reached = (percent: number) => {
      const some = reach({ percent });
      return users.filter((user) => some?.reaches(user) ?? true).length / users.length;
    };
    expect(reached(0)).toBe(0);
    expect(reached(1)).toBeCloseTo(0.01, 2);
    expect(reached(10)).toBeCloseTo(0.1, 1);
    expect(reached(0.01)).toBeLessThan(0.001);
    expect(reached(99.99)).toBeGreaterThan(0.999);
    expect(reached(100)).toBe(1);
  });

  test('no subject is the first of every rollout', () => {
    const first = (limiter: string) => {
      const some = compileRollout(limiter, '{"percent":1}')!;
      return users.filter((user) => some.reaches(user));
    };
    const ours = new Set(first('checkout'));
    expect(ours.size).toBeGreaterThan(50);
    expect(first('search').filter((user) => ours.has(user)).length).toBeLessThan(20);
  });
});

test('subjects by name come first, whatever the share', () => {
  const some = reach({ percent: 0, subjects: ['user:42', 'Ä'] })!;
  expect(some.reaches('user:42')).toBe(true);
  expect(some.reaches('Ä')).toBe(true);
  expect(some.reaches('user:4')).toBe(false);
  expect(some.reaches(null)).toBe(false);
});

test('a take without a subject, and each take by request: a random share', () => {
  let next = 0;
  const random = () => next;
  const bySubject = reach({ percent: 25 }, random)!;
  const byRequest = reach({ percent: 25, by: 'request', subjects: ['vip'] }, random)!;
  for (const [value, reached] of [
    [0, true],
    [0.2499, true],
    [0.25, false],
    [0.9999, false],
  ] as const) {
    next = value;
    expect(bySubject.reaches(null)).toBe(reached);
    expect(byRequest.reaches('user:1')).toBe(reached);
    expect(byRequest.reaches('vip')).toBe(true);
  }
  next = 0;
  expect(reach({ percent: 0 }, random)!.reaches(null)).toBe(false);
});

describe('the text in the params', () => {
  test('comes back as it went in, and 100 % or none is for all', () => {
    const rollout: Rollout = { percent: 12.5, subjects: ['a'], by: 'request', over: 'abc' };
    expect(parseRollout(rolloutText(rollout))).toEqual(rollout);
    expect(rolloutText({ percent: 1, subjects: [], by: 'subject' })).toBe('{"percent":1}');
    expect(rolloutText(undefined)).toBe('');
    expect(compileRollout('a', '')).toBeNull();
    expect(compileRollout('a', '{"percent":100,"over":"x"}')).toBeNull();
    expect(rolloutWords(parseRollout('{"percent":1,"subjects":["a"]}'))).toBe(
      '1 % of the subjects, and 1 by name',
    );
  });

  test.each(['{', '7', 'null', '[]', '{}', '{"percent":"1"}', '{"percent":-1}', '{"percent":101}'])(
    'what cannot be read is for all: %s',
    (text) => {
      expect(compileRollout('a', text)).toBeNull();
    },
  );

  test('fields of a newer version are ignored', () => {
    const reached = compileRollout('a', '{"percent":0,"subjects":["x",7],"regions":["eu"]}');
    expect(reached!.reaches('x')).toBe(true);
  });
});
