import { expect, test } from 'vitest';
import { faultsOf } from '../../src/daemon/policy-files.js';
import type { LoadedPolicy } from '../../src/policy/load.js';

const loaded = (file: string) => ({ file }) as LoadedPolicy;
const fault = (file: string) => ({ file, field: 'limiter.rate', message: 'is no number.' });

test('a file that does not load is told of its own limiter, not of all', () => {
  const files = new Map([
    ['checkout', loaded('checkout.ts')],
    ['search', loaded('search.ts')],
  ]);
  const faults = [fault('search.ts'), fault('new.ts')];
  const told = (limiter: string) => faultsOf(limiter, { files, faults }).map(({ file }) => file);
  expect(told('checkout')).toEqual([]);
  expect(told('search')).toEqual(['search.ts']);
  // Its file has never loaded since the start: it may be the one that is of nobody.
  expect(told('payments')).toEqual(['new.ts']);
});
