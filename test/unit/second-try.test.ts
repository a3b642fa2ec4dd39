import { expect, test, vi } from 'vitest';
import SecondTry from '../support/second-try.js';

const played = (fullName: string, flaky: boolean) => ({
  fullName,
  diagnostic: () => ({ flaky }),
  result: () => ({ errors: flaky ? [new Error(`${fullName} broke\nat line 3`)] : [] }),
});

function told(...tests: ReturnType<typeof played>[]): string {
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
  try {
    const children = { allTests: () => tests.values() };
    new SecondTry().onTestRunEnd([{ relativeModuleId: 'test/a.test.ts', children }]);
    return write.mock.calls.map(([text]) => String(text)).join('');
  } finally {
    write.mockRestore();
  }
}

test('a test that passed at its second try is named, with what broke first', () => {
  expect(told(played('steady', false), played('shaky', true))).toBe(
    '\nPassed at the second try only (1):\n  test/a.test.ts > shaky\n    shaky broke\n',
  );
});

test('nothing is said when all passed at once', () => {
  expect(told(played('steady', false))).toBe('');
});
