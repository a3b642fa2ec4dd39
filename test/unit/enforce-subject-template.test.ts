import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clientAddress } from '../../src/enforce/client-address.js';
import { compileSubject } from '../../src/enforce/subject-template.js';
import { FlyballTypeError } from '../../src/errors.js';

test('fills names from attributes; a missing, empty or inherited one gives null', () => {
  const template = compileSubject('user:{userId}');
  expect(template.attributes).toEqual(['userId']);
  expect(template.fill({ userId: 'ada' })).toBe('user:ada');
  expect(template.fill({ userId: 7 })).toBe('user:7');
  expect(template.fill({})).toBeNull();
  expect(template.fill({ userId: '' })).toBeNull();
  expect(template.fill({ userId: null })).toBeNull();
  expect(compileSubject('{constructor}').fill({})).toBeNull();
});

test.each(['user', '{', '}', 'a{b', 'a}b{c}', '{}', '{a b}', '{{a}}', '{a}{b}', '{a}x{b}'])(
  'template %j is refused',
  (source) => {
    expect(() => compileSubject(source)).toThrow(FlyballTypeError);
  },
);

test('C33: `a:b`+`c` and `a`+`b:c` are different subjects', () => {
  const template = compileSubject('{tenant}:{user}');
  const first = template.fill({ tenant: 'a:b', user: 'c' });
  expect(first).not.toBe(template.fill({ tenant: 'a', user: 'b:c' }));
  expect(first).not.toBe(template.fill({ tenant: 'a%3Ab', user: 'c' }));
});

test('C33: filling is injective for any attributes and separators', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', ':', '/', '%', '3', 'A', 'é'),
    minLength: 1,
  });
  const pair = fc.tuple(text, text);
  const separator = fc.constantFrom(':', '/', '::', 'x:', ':3A/');
  fc.assert(
    fc.property(separator, pair, pair, (between, [a, b], [c, d]) => {
      const template = compileSubject(`p{one}${between}{two}s`);
      const same = a === c && b === d;
      const subjects = [template.fill({ one: a, two: b }), template.fill({ one: c, two: d })];
      expect(subjects[0] === subjects[1]).toBe(same);
    }),
    { numRuns: 500 },
  );
});

test('the client address groups IPv6 by /64 and unwraps IPv4', () => {
  expect(clientAddress('10.1.2.3')).toBe('10.1.2.3');
  expect(clientAddress('::ffff:10.1.2.3')).toBe('10.1.2.3');
  expect(clientAddress('2001:db8:1:2:aaaa::1')).toBe('2001:db8:1:2::/64');
  expect(clientAddress('2001:DB8:1:2::')).toBe('2001:db8:1:2::/64');
  expect(clientAddress('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(clientAddress('::1')).toBe('0:0:0:0::/64');
  expect(clientAddress(undefined)).toBe('unknown');
});
