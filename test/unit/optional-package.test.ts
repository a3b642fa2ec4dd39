/** A package that is not installed is told with the command that installs it; any other fault of loading stays what it is. */
import { expect, test } from 'vitest';
import { optionalPackage } from '../../src/optional-package.js';

const failing = (code: string) => async (): Promise<never> => {
  throw Object.assign(new Error(`from ${code}`), { code });
};

test('what is there is given; what is not is named with the command', async () => {
  expect(await optionalPackage('here', async () => 7)).toBe(7);
  await expect(optionalPackage('gone', failing('ERR_MODULE_NOT_FOUND'))).rejects.toThrow(
    "the npm package 'gone' is not installed. Run: npm install gone",
  );
  const own = (text: string) => Object.assign(new TypeError(text), { permanent: true });
  await expect(optionalPackage('gone', failing('ERR_MODULE_NOT_FOUND'), own)).rejects.toMatchObject(
    { permanent: true, message: expect.stringContaining("'gone'") },
  );
});

test('a package that is there and broken is not called missing', async () => {
  await expect(optionalPackage('broken', failing('ERR_DLOPEN_FAILED'))).rejects.toThrow(
    'from ERR_DLOPEN_FAILED',
  );
});
