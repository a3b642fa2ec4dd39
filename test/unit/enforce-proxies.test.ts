import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalAddress, clientAddress } from '../../src/enforce/client-address.js';
import { lastHop } from '../../src/enforce/forwarded.js';
import { AddressReader } from '../../src/enforce/middleware/request-facts.js';
import { createAddressFinder, type TrustProxy } from '../../src/enforce/proxies.js';
import { FlyballTypeError } from '../../src/errors.js';

const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
  minLength: 8,
  maxLength: 8,
});
const ipv4 = fc
  .array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 })
  .map((parts) => parts.join('.'));
const ipv6 = groups.map((some) => some.map((group) => group.toString(16)).join(':'));
const address = fc.oneof(ipv4, ipv6);

/** The same address written otherwise: zeros shortened or padded, upper case, a zone, dots at the end. */
const spellings = groups.chain((some) =>
  fc
    .record({
      upper: fc.boolean(),
      padded: fc.boolean(),
      zone: fc.constantFrom('', '%eth0'),
      dotted: fc.boolean(),
      from: fc.integer({ min: 0, max: 7 }),
    })
    .map(({ upper, padded, zone, dotted, from }) => {
      const parts = some.map((group) => group.toString(16).padStart(padded ? 4 : 1, '0'));
      let text: string;
      let to = from;
      while (to < 8 && some[to] === 0) to += 1;
      if (to > from) text = `${parts.slice(0, from).join(':')}::${parts.slice(to).join(':')}`;
      else if (dotted) {
        const [high, low] = some.slice(6) as [number, number];
        text = `${parts.slice(0, 6).join(':')}:${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
      } else text = parts.join(':');
      return {
        plain: some.map((g) => g.toString(16)).join(':'),
        text: (upper ? text.toUpperCase() : text) + zone,
      };
    }),
);

test('C50: equal addresses have one canonical form, at any prefix', () => {
  fc.assert(
    fc.property(spellings, fc.integer({ min: 48, max: 128 }), ({ plain, text }, prefix) => {
      const canonical = canonicalAddress(text, prefix);
      expect(canonical).not.toBeNull();
      expect(canonical).toBe(canonicalAddress(plain, prefix));
    }),
    { numRuns: 1_000 },
  );
});

test('two addresses share a form exactly when their first bits are alike', () => {
  const bits = (some: number[]) => some.map((g) => g.toString(2).padStart(16, '0')).join('');
  const text = (some: number[]) => some.map((g) => g.toString(16)).join(':');
  const other = fc.tuple(groups, fc.integer({ min: 0, max: 127 })).map(([some, flip]) => {
    const changed = [...some];
    changed[flip >> 4]! ^= 1 << (15 - (flip & 15));
    return [some, changed] as const;
  });
  fc.assert(
    fc.property(other, fc.integer({ min: 48, max: 128 }), ([a, b], prefix) => {
      const same = canonicalAddress(text(a), prefix) === canonicalAddress(text(b), prefix);
      expect(same).toBe(bits(a).slice(0, prefix) === bits(b).slice(0, prefix));
    }),
    { numRuns: 1_000 },
  );
});

test('an address is IPv4, also within IPv6; else its network; else unknown', () => {
  for (const text of ['::ffff:10.1.2.3', '::FFFF:a01:203', '0:0:0:0:0:ffff:0a01:0203']) {
    expect(clientAddress(text)).toBe('10.1.2.3');
  }
  expect(clientAddress('2001:db8:1:2:3::9', 48)).toBe('2001:db8:1::/48');
  expect(clientAddress('2001:db8:1:2ff:3::9', 56)).toBe('2001:db8:1:200::/56');
  expect(clientAddress('2001:db8::9', 128)).toBe('2001:db8:0:0:0:0:0:9');
  expect(clientAddress('2001:db8::f', 125)).toBe('2001:db8:0:0:0:0:0:8/125');
  for (const text of ['', 'localhost', '10.1.2', '010.1.2.3', '1.2.3.4.5', ':::']) {
    expect(clientAddress(text)).toBe('unknown');
  }
});

const header = fc.oneof(
  fc.string(),
  fc.array(fc.oneof(address, fc.string({ maxLength: 5 }))).map((list) => list.join(', ')),
);

test('C50: with trust off no header changes the subject', () => {
  for (const proxyHeader of ['x-forwarded-for', 'forwarded'] as const) {
    const { find, trusts } = createAddressFinder({ proxyHeader });
    expect(trusts).toBe(false);
    fc.assert(
      fc.property(address, header, (peer, forged) => {
        expect(find(peer, forged)).toBe(clientAddress(peer));
      }),
    );
  }
});

test('C50: behind trusted proxies, whatever a client writes in front changes nothing', () => {
  const cases: [TrustProxy, string[]][] = [
    [1, []],
    [2, ['10.0.0.2']],
    [['10.0.0.0/8'], ['10.0.0.2', '10.9.9.9']],
  ];
  const client = address.filter((text) => !text.startsWith('10.'));
  // A client cannot send a lone end of a list element: proxies append a comma.
  for (const [trustProxy, proxies] of cases) {
    const { find } = createAddressFinder({ trustProxy });
    fc.assert(
      fc.property(header, client, (forged, real) => {
        const value = [forged, real, ...proxies].join(', ');
        expect(find('10.0.0.1', value)).toBe(clientAddress(real));
      }),
    );
    const forwarded = createAddressFinder({ trustProxy, proxyHeader: 'forwarded' }).find;
    fc.assert(
      fc.property(fc.oneof(header, fc.constant('for="'), fc.string()), client, (forged, real) => {
        const node = (text: string) => (text.includes(':') ? `for="[${text}]:80"` : `For=${text}`);
        const value = [forged, ...[real, ...proxies].map(node)].join(', ');
        expect(forwarded('10.0.0.1', value)).toBe(clientAddress(real));
      }),
    );
  }
});

test('C50: who is not a trusted proxy is believed nothing; fewer addresses than hops end at the last', () => {
  const byList = createAddressFinder({ trustProxy: ['10.0.0.0/8', '2001:db8::/32'] }).find;
  expect(byList('192.0.2.1', '1.1.1.1')).toBe('192.0.2.1');
  expect(byList('2001:db8:ffff::1', '1.1.1.1')).toBe('1.1.1.1');
  expect(byList('::ffff:10.1.1.1', '1.1.1.1')).toBe('1.1.1.1');
  expect(byList('10.0.0.1', undefined)).toBe('10.0.0.1');
  expect(byList('10.0.0.1', '10.0.0.3, 10.0.0.2')).toBe('10.0.0.3');
  // A client that resets its connection has no address any more, and is believed nothing.
  expect(byList(undefined, '1.1.1.1')).toBe('unknown');
  const byHops = createAddressFinder({ trustProxy: 3 }).find;
  expect(byHops('192.0.2.1', '1.1.1.1')).toBe('1.1.1.1');
  // A Unix socket has no address, and its proxy is one hop.
  expect(byHops(undefined, '2.2.2.2')).toBe('2.2.2.2');
  expect(createAddressFinder({ trustProxy: 0 }).trusts).toBe(false);
  const own = createAddressFinder({ trustProxy: 'loopback' }).find;
  expect([own('127.0.0.9', '1.1.1.1'), own('::1', '1.1.1.1')]).toEqual(['1.1.1.1', '1.1.1.1']);
  expect(own('10.0.0.1', '1.1.1.1')).toBe('10.0.0.1');
});

test('what is no address ends the walk at the proxy that sent it', () => {
  const { find } = createAddressFinder({ trustProxy: ['10.0.0.0/8'] });
  for (const wrong of ['unknown', '', '1.1.1', '1.1.1.1:99999999', '[1.1.1.1]', '::1]', 'a b']) {
    expect(find('10.0.0.1', `9.9.9.9, ${wrong}, 10.0.0.2`)).toBe('10.0.0.2');
  }
  for (const [text, right] of [
    ['1.1.1.1:443', '1.1.1.1'],
    ['[2001:db8::1]', '2001:db8:0:0::/64'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ]) {
    expect(find('10.0.0.1', text)).toBe(right);
  }
});

test('Forwarded: one `for` in each element, quoted or not; hidden and unknown ones are no addresses', () => {
  const addressOf = (text: string) => lastHop('forwarded', text, text.length).address;
  expect(addressOf('for=1.1.1.1')).toBe('1.1.1.1');
  expect(addressOf('proto=https;FOR="1.1.1.1:80";by=2.2.2.2')).toBe('1.1.1.1');
  expect(addressOf('host="a, b\\" c;for=9.9.9.9";for="[2001:db8::1]:1"')).toBe('2001:db8::1');
  expect(addressOf('for=9.9.9.9, for="1.1.1.1"')).toBe('1.1.1.1');
  for (const text of [
    'for=unknown',
    'for=_hidden',
    'by=1.1.1.1',
    'for=1.1.1.1;for=2.2.2.2',
    'for=1.1.1.1 for=2.2.2.2',
    'for="1.1.1.1',
    'for=',
    'for',
    '',
  ]) {
    expect(addressOf(text), text).toBeNull();
  }
});

test('long headers are read from the right only as far as the proxies reach', () => {
  const { find } = createAddressFinder({ trustProxy: 2 });
  const long = `${'9.9.9.9, '.repeat(10_000)}1.1.1.1, 2.2.2.2`;
  expect(find('10.0.0.1', long)).toBe('1.1.1.1');
  const everybody = createAddressFinder({ trustProxy: ['0.0.0.0/1', '128.0.0.0/1'] }).find;
  expect(everybody('10.0.0.1', long)).toBe('9.9.9.9');
});

test('C50: told once: a forwarded request that nobody trusts, and a proxy that everybody seems to be', () => {
  const off = new AddressReader({});
  const read = (reader: AddressReader, value: string | undefined) => {
    reader.read('10.0.0.1', (name) => (name === 'x-forwarded-for' ? value : undefined));
    const { warning } = reader;
    reader.warning = null;
    return warning?.code;
  };
  expect(read(off, undefined)).toBeUndefined();
  expect(read(off, '1.1.1.1')).toBe('FLYBALL_W_PROXY_NOT_TRUSTED');
  expect(read(off, '1.1.1.1')).toBeUndefined();

  // Two proxies stand before the service, and one is trusted: all lead to the other.
  const few = new AddressReader({ trustProxy: 1 });
  const told = Array.from({ length: 500 }, (_, i) => read(few, `1.1.1.${i % 250}, 10.0.0.2`));
  expect(told.filter((code) => code === 'FLYBALL_W_ONE_ADDRESS')).toHaveLength(1);
  const right = new AddressReader({ trustProxy: 2 });
  for (let i = 0; i < 500; i++) {
    expect(read(right, `1.1.1.${i % 250}, 10.0.0.2`)).toBeUndefined();
  }
  // One client alone behind a proxy is no fault.
  const alone = new AddressReader({ trustProxy: 1 });
  for (let i = 0; i < 500; i++) expect(read(alone, '1.1.1.1')).toBeUndefined();
});

test('what cannot be used is refused', () => {
  for (const trustProxy of [true, -1, 33, 'all', ['x'], ['10.0.0.0/33'], ['10.0.0.0/0'], [7]]) {
    expect(() => createAddressFinder({ trustProxy: trustProxy as TrustProxy })).toThrow(
      FlyballTypeError,
    );
  }
});
