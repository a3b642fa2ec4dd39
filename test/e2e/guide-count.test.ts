/** The guards of the guide, run as they stand there: wrong passwords count, right ones do not; what was not sent does not. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLimiter, type Limiter } from '../../src/index.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { until } from '../support/sdk-params.js';

const GUIDE = readFileSync(
  new URL('../../docs/guides/which-algorithm.md', import.meta.url),
  'utf8',
);
let server: TestRedis;
let limiter: Limiter;

beforeEach(async () => {
  server = await startRedis();
});
afterEach(async () => {
  await limiter.close();
  await server.stop();
});

/** A snippet of the guide as a function of what it names. */
function snippet<T extends object>(
  name: string,
  names: (keyof T)[],
): (given: T) => Promise<string> {
  const code = new RegExp(`<!-- run: ${name} -->\n\`\`\`ts\n([\\s\\S]*?)\`\`\``).exec(GUIDE)?.[1];
  if (code === undefined) throw new Error(`the guide has no snippet ${name}`);
  const make = new Function(`return async ({ ${names.join(', ')} }) => { ${code} }`);
  return make();
}

function make(capacity: number, count: 'failures' | 'successes'): Limiter {
  limiter = createLimiter({
    name: 'guard',
    url: server.url,
    deadlineMs: 5_000,
    rate: 50,
    capacity: 500,
    perSubject: { rate: capacity / 3600, capacity },
    count,
    onWarning: () => {},
  });
  return limiter;
}

test('the sign-in guard', async () => {
  const run = snippet<{ signIn: Limiter; name: string; checkPassword: unknown; password: string }>(
    'sign-in',
    ['signIn', 'name', 'checkPassword', 'password'],
  );
  const signIn = make(5, 'failures');
  const checkPassword = async (_name: string, password: string) => password === 'right';
  const tries = (name: string, password: string) => run({ signIn, name, checkPassword, password });
  for (let i = 0; i < 20; i += 1) {
    expect(await tries('ann', 'right')).toBe('welcome');
    await until('it is given back', () => signIn.stats().refunded === i + 1);
  }
  const guesses = await Promise.all(Array.from({ length: 50 }, (_, i) => tries('bob', `no-${i}`)));
  expect(guesses.filter((each) => each === 'wrong password').length).toBe(5);
  expect(await tries('bob', 'right')).toBe('too many wrong passwords');
  expect(await tries('ann', 'right')).toBe('welcome');
});

test('the SMS guard', async () => {
  const run = snippet<{ sms: Limiter; number: string; gateway: unknown; text: string }>('sms', [
    'sms',
    'number',
    'gateway',
    'text',
  ]);
  const sms = make(3, 'successes');
  let works = false;
  const gateway = { send: async () => works };
  const send = () => run({ sms, number: '+4912345', gateway, text: 'your code' });
  for (let i = 0; i < 10; i += 1) {
    expect(await send()).toBe('refused');
    await until('it is given back', () => sms.stats().refunded === i + 1);
  }
  works = true;
  const answers = await Promise.all([1, 2, 3, 4, 5].map(send));
  expect(answers.filter((each) => each === 'sent').length).toBe(3);
  expect(await send()).toBe('too many messages');
});
