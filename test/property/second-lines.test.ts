import fc from 'fast-check';
import { expect, test } from 'vitest';
import { binIn, gainsOf, nameIn } from '../../src/sense/second-lines.js';

type Fields = Record<string, number>;

const names = ['n', 'off', 'l:1', 'l:12', 'l:-3', 'p:a', 'p:ab', 'w:7', 'ok', 'gc:4:E1', 'k:-9'];
const fields = fc.dictionary(fc.constantFrom(...names), fc.integer({ min: 0, max: 1e6 }), {
  noNullPrototype: true,
});

const linesOf = (order: readonly string[], of: Fields) =>
  Buffer.from(
    order
      .filter((name) => name in of)
      .map((name) => `${name}\n${of[name]}`)
      .join('\n'),
  );

function told(before: Buffer | undefined, now: Buffer): Fields {
  const { size, from, to, by } = gainsOf(before, now);
  const found = Array.from({ length: size }, (_, i) => [nameIn(now, from[i]!, to[i]!), by[i]!]);
  return Object.fromEntries(found) as Fields;
}

/** What it should say, field by field. */
function model(before: Fields, now: Fields): Fields {
  const lost = Object.keys(before).some((name) => !(name in now) || now[name]! < before[name]!);
  const since = lost ? {} : before;
  const gained = Object.entries(now).map(([name, n]) => [name, n - (since[name] ?? 0)] as const);
  return Object.fromEntries(gained.filter(([, by]) => by > 0));
}

test('what a second gained is the difference, in whatever order Redis tells it, and all of it once it was lost', () => {
  fc.assert(
    fc.property(
      fields,
      fields,
      fc.shuffledSubarray(names, { minLength: names.length }),
      fc.shuffledSubarray(names, { minLength: names.length }),
      fc.boolean(),
      fc.boolean(),
      (before, more, one, other, grows, sameOrder) => {
        const now = grows ? { ...before } : more;
        if (grows) for (const name in more) now[name] = (before[name] ?? 0) + more[name]!;
        const first = linesOf(one, before);
        const second = linesOf(sameOrder ? one : other, now);
        expect(told(first, second)).toEqual(model(before, now));
        expect(told(undefined, second)).toEqual(model({}, now));
        expect(told(second, second)).toEqual({});
      },
    ),
    { numRuns: 500 },
  );
});

test('a count that is none is named, and the rest is still told', () => {
  for (const bad of ['', '-1', 'NaN', '1e9', '1.5', '99999999999999999']) {
    const now = Buffer.from(`off\n5\nok\n${bad}\nn\n1`);
    expect(gainsOf(undefined, now).broken).toBe('ok');
    expect(told(undefined, now)).toEqual({ off: 5, n: 1 });
  }
  expect(gainsOf(undefined, Buffer.from('off\n5')).broken).toBeUndefined();
  expect(gainsOf(undefined, Buffer.from('off')).broken).toBe('off');
});

test('bins are numbers, also below zero', () => {
  expect(
    ['212', '-17', '0', '', '-', '1a'].map((text) => binIn(Buffer.from(text), 0, text.length)),
  ).toEqual([212, -17, 0, Number.NaN, Number.NaN, Number.NaN]);
});
