/** A login in an address: sent as a header, kept out of what is shown; a lone % is no fault. Stage: tests. */
import { expect, test } from 'vitest';
import { redacted } from '../../src/log.js';
import { basicAuth, takeLogin } from '../../src/login.js';

test.each([
  ['http://ada:se%20cret@am:9093/x', 'ada', 'se cret'],
  ['http://ada:50%@am:9093/x', 'ada', '50%'],
  ['http://ada@am:9093/x', 'ada', ''],
])('%s', (address, user, password) => {
  const url = new URL(address);
  expect(takeLogin(url)).toMatchObject({ authorization: basicAuth(user, password) });
  expect(url.href).toBe('http://am:9093/x');
});

test('without one there is nothing to take', () => {
  expect(takeLogin(new URL('http://am:9093/x'))).toBeNull();
});

test('known secrets and passwords of addresses are shown nowhere', () => {
  expect(redacted('at redis://u:pw@h/0: token t0p failed', ['t0p', ''])).toBe(
    'at redis://u:***@h/0: token *** failed',
  );
});
