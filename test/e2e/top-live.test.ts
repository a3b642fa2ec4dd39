/** `flyball top` over all limiters: live on a terminal, once without one, as lines of JSON; its verbs; Redis away and back. */
import type { Redis } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, cliProcess, mustRead, seedLimiter } from '../support/cli-run.js';
import { redisBench } from '../support/redis-bench.js';
import type { TestRedis } from '../support/redis-server.js';
import { fakeTerminal, realTerminal, type Terminal } from '../support/terminal.js';

vi.setConfig({ testTimeout: 120_000 });

const [checkout, orders] = [{ name: 'checkout' }, { name: 'orders' }];
let server: TestRedis;
let redis: Redis;
let env: NodeJS.ProcessEnv;

redisBench(async (bench) => {
  ({ server, redis, env } = bench);
  await seedLimiter(redis, checkout);
  await seedLimiter(redis, orders);
});

const shows = (terminal: Terminal, text: string | RegExp) =>
  vi.waitFor(() => expect(terminal.screen()).toMatch(text), { timeout: 20_000 });
const SEEN = /▸ checkout +closed/;

describe('without a terminal', () => {
  test('one table, and no escape sequence; --json --once one object', async () => {
    const shown = await cli(['top'], { env });
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(/^LIMITER +BREAKER +MODE +RATE\/S/);
    expect(shown.stdout).toMatch(/^checkout +closed +auto +100 of 20-400 +\? \/ 24 /m);
    const json = JSON.parse((await cli(['top', '--once', '--json'], { env })).stdout);
    expect(json).toMatchObject({
      ...{ schema: 1, redis: expect.any(String), atMs: expect.any(Number), unread: [] },
      limiters: [{ limiter: 'checkout', inForce: { rate: 100 } }, { limiter: 'orders' }],
    });
    const [one] = JSON.parse(
      (await cli(['status', 'checkout', '--json'], { env })).stdout,
    ).limiters;
    expect(Object.keys(json.limiters[0])).toEqual(Object.keys(one));
  });

  test('--json: a line each second until Ctrl-C', async () => {
    const terminal = fakeTerminal(['top', '--json'], env);
    await vi.waitFor(() => expect(terminal.all().trim().split('\n').length).toBeGreaterThan(1), {
      timeout: 20_000,
    });
    process.emit('SIGINT');
    expect(await terminal.code).toBe(130);
    const stdout = terminal.all();
    expect(stdout).not.toContain('\x1b');
    const each = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(each.length).toBeGreaterThan(0);
    for (const line of each) expect(line).toMatchObject({ schema: 1, limiters: { length: 2 } });
  });

  test('one that cannot be read is left out and said; none is known', async () => {
    await redis.hset(limiterKeys(orders).params, 'rate', 'many');
    const shown = await cli(['top', '--once'], { env });
    expect(shown.code).toBe(1);
    expect(shown.stdout).toMatch(/^checkout /m);
    expect(shown.stderr).toContain('orders is left out');
    await redis.flushall();
    const none = await cli(['top'], { env });
    expect(none).toMatchObject({ code: 0, stdout: '' });
    expect(none.stderr).toContain('No limiter is known');
  });

  test('a dumb terminal, --no-input: the table, once', async () => {
    for (const [args, more] of [
      [['top'], { TERM: 'dumb' }],
      [['top', '--no-input'], {}],
    ] as const) {
      const terminal = fakeTerminal([...args], { ...env, ...more });
      expect(await terminal.code).toBe(0);
      expect(terminal.all()).not.toContain('\x1b');
      expect(terminal.all()).toMatch(/^checkout /m);
    }
  });

  test.each([
    [
      'top --denied',
      '--denied is about the subjects of one limiter. Name it: flyball top checkout.',
    ],
    ['top --over 5m', '--over is about the subjects of one limiter.'],
    ['top checkout --once', '--once is about the table of all limiters.'],
    ['top checkout --over 3m', '"3m" is no window. Write 1m, 5m or 60m.'],
    ['top nobody', 'no limiter "nobody"'],
    ['top --onse', "unknown option '--onse' (Did you mean --once?)"],
  ])('%s is answered with the mend', async (args, said) => {
    const shown = await cli(args.split(' '), { env });
    expect(shown.stdout).toBe('');
    expect(shown.code).toBe(64);
    expect(shown.stderr).toContain(said);
  });

  test('the built program in a pipe', async () => {
    const shown = await cliProcess(['top'], env);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^orders /m);
    expect(shown.stdout + shown.stderr).not.toContain('\x1b');
  });
});

describe('on a terminal', () => {
  test('cursor, search, order, help, size; q gives the terminal back', async () => {
    const terminal = fakeTerminal(['top'], env);
    await shows(terminal, SEEN);
    expect(terminal.raw()).toBe(true);
    terminal.type('j');
    await shows(terminal, /▸ orders/);
    terminal.type('/chec');
    await shows(terminal, /by name {2}\/chec_[\s\S]*▸ checkout/);
    expect(terminal.screen()).not.toContain('orders');
    terminal.type('\x1b');
    await shows(terminal, /orders/);
    terminal.type('ss');
    await shows(terminal, /by denied/);
    terminal.type('?');
    await shows(terminal, /pin: your rate and cap, held for 1 h/);
    terminal.type(' ');
    terminal.resize(60, 8);
    await expect.poll(() => terminal.screen().trimEnd().split('\n').length).toBeLessThanOrEqual(8);
    for (const line of terminal.screen().split('\n'))
      expect([...line].length).toBeLessThanOrEqual(60);
    terminal.type('q');
    expect(await terminal.code).toBe(0);
    expect(terminal.all().endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
    expect(terminal.raw()).toBe(false);
  });

  test('pin, freeze and thaw, release, trip and reset, roll back: shown, asked, one entry each', async () => {
    const terminal = fakeTerminal(['top'], env);
    await shows(terminal, SEEN);
    const say = async (keys: string, then: string | RegExp) => {
      terminal.type(keys);
      await shows(terminal, then);
    };
    await say('p', /Pin checkout at how many per second/);
    await say('80\r', /in flight at most/);
    await say('\r', /Reason, for the audit log/);
    await say('INC-118\r', /rate +100\/s +→ +80\/s[\s\S]*Do it\? \[y\/N\]/);
    await say('y\r', /done {2}revision 2/);
    await shows(terminal, /▸ checkout .*80 of 20-400.*pinned/);
    await say('l\r', /Do it\?/);
    await say('y\r', /done {2}revision 3/);
    await say('f\r', /Do it\?/);
    await say('y\r', /done {2}revision 4/);
    await shows(terminal, /▸ checkout .*frozen/);
    await say('f\r', /Do it\?/);
    await say('y\r', /done {2}revision 5/);
    await say('t\r', /Do it\?/);
    await say('y\r', /done {2}revision 6/);
    await shows(terminal, /▸ checkout +open/);
    await say('t\r', /Do it\?/);
    await say('y\r', /done {2}revision 7/);
    await shows(terminal, /▸ checkout +(closed|recovering|half-open)/);
    await say('b', /back to which revision \(now 7; enter: 6\)/);
    await say('2\r', /Reason/);
    await say('\r', /Do it\?/);
    await say('y\r', /done {2}revision 8/);
    terminal.type('q');
    expect(await terminal.code).toBe(0);
    const { entries } = await readEntries(redis, checkout, { limit: 20, kind: 'change' });
    expect(entries.map(({ body }) => body.reason).reverse()).toEqual([
      ...['params_created', 'pin', 'release', 'freeze', 'thaw', 'trip', 'reset', 'rollback'],
    ]);
    expect(entries[6]!.body.sentence).toContain('Reason: INC-118');
    expect(entries[0]!.body.actor.name).toMatch(/@.* \(unverified\)$/);
  });

  test('escape, no, a wrong number, a revision that is not there: nothing is written', async () => {
    const terminal = fakeTerminal(['top'], env);
    await shows(terminal, SEEN);
    const say = async (keys: string, then: string | RegExp) => {
      terminal.type(keys);
      await shows(terminal, then);
    };
    await say('t', /Reason/);
    await say('\x1b', /Nothing was changed\./);
    await say('t\r', /Do it\?/);
    await say('n\r', /Nothing was changed\./);
    await say('p', /per second/);
    await say('many\r', /in flight/);
    await say('\r', /"many" is no number/);
    await say('b', /which revision/);
    await say('99\r', /no audit entry for revision 99/);
    await say('l\r', /checkout is not pinned|neither pinned|nothing/i);
    terminal.type('\x03');
    expect(await terminal.code).toBe(0);
    expect((await mustRead(redis, checkout)).revision).toBe(1);
  });

  test('hostile text from Redis reaches the terminal as text', async () => {
    await redis.hset(
      limiterKeys(checkout).params,
      'heldBy',
      '\x1b]0;owned\x07',
      'pinnedUntil',
      '-1',
    );
    await redis.hset('flyball:limiters', 'evil\x1b[2J', '');
    const terminal = fakeTerminal(['top'], env);
    await shows(terminal, /▸ checkout .*pinned/);
    terminal.type('l\r');
    await shows(terminal, /Do it\?/);
    terminal.type('\x1b');
    await shows(terminal, /Nothing was changed/);
    terminal.type('q');
    await terminal.code;
    expect(terminal.all()).not.toContain('\x1b]0');
    expect(terminal.all()).not.toContain('\x1b[2J');
  });

  test('Redis away is said while the rows stay, and heals; every daemon is dead all the while', async () => {
    const terminal = fakeTerminal(['top'], env);
    await shows(terminal, SEEN);
    await server.kill();
    await shows(terminal, /^Redis does not answer: shown: .*Trying again\./);
    expect(terminal.screen()).toMatch(/▸ checkout/);
    await server.restart();
    redis = server.client();
    await seedLimiter(redis, { name: 'refunds' });
    await shows(terminal, /▸ refunds +closed/);
    terminal.type('q');
    expect(await terminal.code).toBe(0);
  });
});

describe('on a real terminal', () => {
  test('drawn to its size and anew at each size; q leaves it as it was', async () => {
    const terminal = realTerminal(['top'], env);
    await shows(terminal, SEEN);
    expect(terminal.all()).toContain('\x1b[?1049h');
    terminal.resize(50, 9);
    await shows(terminal, /^[^\n]{0,50}(\n[^\n]{0,50}){8}$/);
    terminal.type('q');
    expect(await terminal.ended).toEqual({ code: 0, cooked: true });
    expect(terminal.all()).toContain('\x1b[?25h\x1b[?1049l');
  });

  test.each([
    ['SIGTERM', 15, 130],
    ['SIGHUP', 1, 0],
  ])('%s leaves it as it was', async (_name, number, code) => {
    const terminal = realTerminal(['top'], env);
    await shows(terminal, SEEN);
    terminal.signal(number);
    expect(await terminal.ended).toEqual({ code, cooked: true });
    expect(terminal.all()).toContain('\x1b[?25h\x1b[?1049l');
  });

  test('a crash leaves it as it was, and says why below', async () => {
    const terminal = realTerminal(['top'], {
      ...env,
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
        "process.on('SIGUSR2', () => setImmediate(() => { throw new Error('a fault'); }))",
      )}`,
    });
    await shows(terminal, SEEN);
    terminal.signal(12);
    const { code, cooked } = await terminal.ended;
    expect(code).not.toBe(0);
    expect(cooked).toBe(true);
    expect(terminal.all()).toContain('\x1b[?25h\x1b[?1049l');
    expect(terminal.all()).toContain('a fault');
  });
});
