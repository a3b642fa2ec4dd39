/** Names of telemetry fields known again by their bytes: never taken for one another. */
import { expect, test } from 'vitest';
import { createFieldNames, type FieldName } from '../../src/sense/field-names.js';

const inLines = (name: string) => {
  const lines = Buffer.from(`x:${name}\n7`);
  return [lines, 2, lines.length - 2] as const;
};

function names() {
  const learnt: FieldName[] = [];
  const meaningOf = createFieldNames((field) => {
    learnt.push(field);
    return field;
  });
  return { learnt, of: (name: string) => meaningOf(...inLines(name)) };
}

test('a name is read once, as kind, name and code', () => {
  const { learnt, of } = names();
  expect(of('uc:pay:E1')).toEqual({ kind: 'uc', name: 'pay', code: 'E1' });
  expect(of('off')).toEqual({ kind: 'off', name: '', code: '' });
  expect(of('d:größe')).toEqual({ kind: 'd', name: 'größe', code: '' });
  expect(of('uc:pay:E1')).toBe(learnt[0]);
  expect(learnt).toHaveLength(3);
});

test('two names with one hash are told apart, however they take turns', () => {
  const { of } = names();
  for (let i = 0; i < 3; i++) {
    expect(of('c:Aa').name).toBe('Aa');
    expect(of('c:BB').name).toBe('BB');
    expect(of('c:Aa0').name).toBe('Aa0');
  }
});

test('more names than are kept are read all the same', () => {
  const { learnt, of } = names();
  for (let i = 0; i < 40_000; i++) expect(of(`c:E${i}`).name).toBe(`E${i}`);
  expect(of('c:E39999').name).toBe('E39999');
  expect(learnt).toHaveLength(40_000);
});
