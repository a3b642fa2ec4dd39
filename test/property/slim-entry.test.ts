/** An entry read without the inputs of its decision tells episodes the same as one that is parsed whole, whatever they hold. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalJson,
  type EntryBody,
  isReadable,
  readEntry,
  sealEntry,
} from '../../src/actuate/entry.js';
import { readSlim } from '../../src/audit/slim-entry.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';

/** Keys of a body where none belong, and text that looks like them. */
const KEYS = ['sample', 'sentence', 'stateBefore', 'terms', 'v', 'verdicts', 'x', '"', '\\'];
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('a', ',"sentence":"', '},"sample":{', '\\', '\\"', '→ ü', ''),
    fc.double({ noNaN: true }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('tree'), { maxKeys: 4 }),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
}));
const object = fc.dictionary(fc.constantFrom(...KEYS), tree, { maxKeys: 5 });
const VALUES = { mode: 'auto', state: 'closed', rate: 400, capacity: 400, inFlightMax: 44 };

const body = fc.record(
  {
    ...{ v: fc.constant(1), kind: fc.constant('change'), limiter: fc.constant('checkout') },
    ...{ epoch: fc.constant(1), revision: fc.constant(7), atMs: fc.constant(1e12) },
    actor: fc.record({ kind: fc.constant('person'), name: fc.constantFrom('ops', ',"sample":{') }),
    reason: fc.constantFrom('pin', 'law_cut'),
    sentence: fc.oneof(fc.string(), fc.constantFrom('p95 548 ms → "slow"', ',"v":1', '\\')),
    ...{ before: fc.constant(VALUES), after: fc.constantFrom(VALUES, null) },
    ...{ policyHash: fc.constant('f'), law: fc.constant('adaptive@4') },
    ...{ detail: object, sample: object, stateBefore: object, terms: object },
    verdicts: fc.array(fc.record({ guard: fc.string(), sentence: fc.string() }), { maxLength: 2 }),
  },
  {
    requiredKeys: [
      ...(['v', 'kind', 'limiter', 'epoch', 'revision', 'atMs', 'actor', 'reason'] as const),
      ...(['before', 'after', 'policyHash'] as const),
    ],
  },
);

const fieldsOf = (text: string) => [
  ...['kind', 'change', 'epoch', '1', 'revision', '7', 'hash', 'h', 'prev', 'p', 'body', text],
];

test('as from the whole text', () => {
  fc.assert(
    fc.property(body, (given) => {
      const fields = fieldsOf(canonicalJson(given));
      const whole = readEntry('5-0', fields);
      const slim = readSlim('5-0', fields);
      if (!isReadable(whole)) return;
      const { sample, stateBefore, terms, verdicts, v, kind, limiter, ...rest } = whole.body;
      const { policyHash, epoch, revision, ...told } = rest;
      expect(slim).toEqual({ id: '5-0', kind: 'change', epoch: 1, revision: 7, body: told });
    }),
  );
});

test('what is no entry is none, and one of another order of keys is read whole', () => {
  for (const text of [
    '',
    '{',
    '{}',
    '[]',
    'null',
    '{"sample":{',
    '{"a":1,"sample":{},"sentence":"',
  ])
    expect(readSlim('5-0', fieldsOf(text)), text).toBeNull();
  expect(readSlim('5-0', ['kind', 'change'])).toBeNull();
  expect(readSlim('5-0', ['kind', 'change', 'body'])).toBeNull();
  const other = {
    ...{ v: 1, sentence: 'It is.', sample: {}, kind: 'change', reason: 'pin', policyHash: '' },
    ...{ actor: { kind: 'person', name: 'ops' }, atMs: 5, before: null, after: VALUES },
  };
  const sealed = sealEntry(GENESIS_HASH, other as unknown as EntryBody);
  for (const text of [JSON.stringify(other), sealed.body, JSON.stringify(other, null, 2)]) {
    expect(readSlim('5-0', fieldsOf(text))?.body).toMatchObject({ sentence: 'It is.', atMs: 5 });
  }
});
