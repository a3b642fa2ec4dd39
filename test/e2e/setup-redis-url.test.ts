/** Set-up with FLYBALL_REDIS_URL: a server that answers is enough to start, one that does not is named. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';
import { newMachine, runSetup } from '../support/setup-run.js';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
  await server.client().config('SET', 'requirepass', 'hunter2');
});
afterAll(() => server.stop());

test('a server that answers: nothing is installed', async () => {
  const machine = newMachine();
  machine.withApt();
  const env = { FLYBALL_REDIS_URL: server.url.replace('//', '//:hunter2@') };
  expect(await runSetup(machine, { env })).toMatchObject({ stderr: '', found: { missing: {} } });
  const apart = { FLYBALL_REDIS_URL: server.url, FLYBALL_REDIS_PASSWORD: 'hunter2' };
  expect(await runSetup(machine, { env: apart })).toMatchObject({ found: { missing: {} } });
});

test('the tests start servers of their own, so for them a URL does not count', async () => {
  const env = { FLYBALL_REDIS_URL: server.url.replace('//', '//:hunter2@') };
  const { found } = await runSetup(newMachine(), { task: 'test', env });
  expect(found?.missing['redis-server']).toMatch(/none is on PATH/);
});

test('a wrong password, or nobody there: one sentence with the address and without the password', async () => {
  const wrong = server.url.replace('//', '//:wrong-secret@');
  const away = `redis://bob:wrong-secret@127.0.0.1:${await freePort()}`;
  for (const [url, why] of [
    [wrong, /WRONGPASS/],
    [away, /ECONNREFUSED/],
    ['nonsense', /not a URL/],
  ] as const) {
    const { found } = await runSetup(newMachine(), { env: { FLYBALL_REDIS_URL: url } });
    expect(found?.missing['redis-server']).toMatch(why);
    expect(found?.missing['redis-server']).not.toContain('wrong-secret');
  }
});
