/** Tokens, hosts, points and roles of the API, each by itself. */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createChannel } from '../../src/api/channel.js';
import { createClientLimit } from '../../src/api/client-limit.js';
import { hostRule, isOwnOrigin } from '../../src/api/hosts.js';
import { createRing } from '../../src/api/ring.js';
import { mayDo } from '../../src/api/roles.js';
import { createTokenStore, tokenPlaces } from '../../src/api/token-store.js';
import {
  findToken,
  hashToken,
  newToken,
  parseTokens,
  readTokens,
  tokenLine,
} from '../../src/api/tokens.js';
import type { SeriesPoint } from '../../src/api/types.js';
import { manualClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import { cli } from '../support/cli-run.js';
import { keptLog } from '../support/kept-log.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-tokens-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('tokens', () => {
  const hash = 'a'.repeat(64);

  test('a file: names, roles, hashes; comments and empty lines aside', () => {
    const records = parseTokens(
      `# ours\n\nada:operator:${hash}\n bob:reader:${'B'.repeat(64)} \n`,
      'f',
    );
    expect(records.map(({ name, role }) => [name, role])).toEqual([
      ['ada', 'operator'],
      ['bob', 'reader'],
    ]);
    expect(tokenLine(records[0]!)).toBe(`ada:operator:${hash}`);
  });

  test.each([
    ['ada:operator', 'f:1: is not name:role:sha256'],
    [`ada:root:${hash}`, 'f:1: the role is none of reader, operator, admin'],
    ['ada:admin:flyball_secret', 'f:1: the hash is no SHA-256'],
    [`a b:admin:${hash}`, 'f:1: the name may hold'],
    [`local:admin:${hash}`, "f:1: the name local is the machine's own"],
    [`ada:admin:${hash}\nada:reader:${hash}`, 'f:2: the name stands there twice'],
    [`ada:admin:${hash}\nbob:reader:${hash.toUpperCase()}`, 'f:2: the hash stands there twice'],
  ])('%s is a fault that names its line and repeats no secret', (text, message) => {
    expect(() => parseTokens(text, 'f')).toThrow(message);
    expect(() => parseTokens(text, 'f')).not.toThrow(/flyball_secret/);
  });

  test('one is found by itself alone', () => {
    const [a, b] = [newToken(), newToken()];
    const records = [a, b].map((token, i) => {
      return { name: `n${i}`, role: 'reader' as const, sha256: hashToken(token) };
    });
    expect(findToken(records, b)?.name).toBe('n1');
    for (const wrong of ['', a.slice(0, -1), `${a} `, a.toUpperCase(), 'x'.repeat(300)]) {
      expect(findToken(records, wrong)).toBeNull();
    }
  });

  test('the local one is written once, for its owner alone, and read by the next', () => {
    const places = tokenPlaces(undefined, join(dir, '.flyball'));
    const start = () =>
      createTokenStore({ places, clock: manualClock(), log: createLog({ level: 'silent' }) });
    const first = start();
    expect(first.records()).toMatchObject([{ name: 'local', role: 'admin' }]);
    expect(statSync(first.localFile!).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(dir, '.flyball/.gitignore'), 'utf8')).toBe('*\n');
    expect(start().records()[0]!.sha256).toEqual(first.records()[0]!.sha256);
  });

  test('where no folder can be made it is an error, and not waited for', () => {
    const places = tokenPlaces(undefined, '/proc/flyball/data');
    const start = () =>
      createTokenStore({ places, clock: manualClock(), log: createLog({ level: 'silent' }) });
    expect(start).toThrow(expect.objectContaining({ code: 'FLYBALL_E_DATA_DIR' }));
  });

  test('a change that keeps size and time of the file counts too', () => {
    const file = join(dir, 'given');
    const [a, b] = [newToken(), newToken()];
    const line = (token: string) =>
      tokenLine({ name: 'ada', role: 'admin', sha256: hashToken(token) });
    writeFileSync(file, line(a));
    utimesSync(file, 1_000_000_000, 1_000_000_000);
    const clock = manualClock();
    const log = createLog({ level: 'silent' });
    const store = createTokenStore({ places: tokenPlaces(file, dir), clock, log });
    writeFileSync(file, line(b));
    utimesSync(file, 1_000_000_000, 1_000_000_000);
    clock.advance(1001);
    expect(findToken(store.records(), a)).toBeNull();
    expect(findToken(store.records(), b)?.name).toBe('ada');
  });

  test.each([
    ['a pipe', (file: string) => execFileSync('mkfifo', [file]), 'no plain file'],
    ['a device', (file: string) => symlinkSync('/dev/zero', file), 'no plain file'],
    ['a folder', (file: string) => mkdirSync(file), 'a folder'],
    [
      'too large',
      (file: string) => writeFileSync(file, '#'.repeat(2e6)),
      'more than 1048576 bytes',
    ],
  ])(
    '%s in place of the file is not waited for: what was known goes on to count',
    (_, put, why) => {
      const file = join(dir, 'given');
      const token = newToken();
      const record = { name: 'ada', role: 'admin', sha256: hashToken(token) } as const;
      writeFileSync(file, tokenLine(record));
      const clock = manualClock();
      const kept = keptLog();
      const store = createTokenStore({ places: tokenPlaces(file, dir), clock, log: kept.log });
      rmSync(file);
      put(file);
      clock.advance(1001);
      expect(findToken(store.records(), token)?.name).toBe('ada');
      expect(kept.text).toContain(why);
      expect(() => readTokens(file)).toThrow(why);
    },
  );

  test('a file that is given counts alone, and must be there', () => {
    const file = join(dir, 'given');
    const places = tokenPlaces(file, dir);
    const start = () =>
      createTokenStore({ places, clock: manualClock(), log: createLog({ level: 'silent' }) });
    expect(start).toThrow('FLYBALL_TOKENS_FILE');
    writeFileSync(file, `ada:reader:${hash}`);
    expect(
      start()
        .records()
        .map(({ name }) => name),
    ).toEqual(['ada']);
    expect(start().localFile).toBeNull();
  });

  test('flyball token: made, listed, taken back; the file holds no token', async () => {
    const file = join(dir, 'tokens');
    const env = { FLYBALL_TOKENS_FILE: file };
    const added = await cli(['token', 'add', 'ada', '--role', 'operator'], { env });
    const token = added.stdout.trim();
    expect(token).toMatch(/^flyball_[\w-]{43}$/);
    expect(added.stderr).not.toContain(token);
    expect(readFileSync(file, 'utf8')).not.toContain(token);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(findToken(parseTokens(readFileSync(file, 'utf8'), file), token)?.name).toBe('ada');
    const listed = await cli(['token', 'list', '--json'], { env });
    expect(JSON.parse(listed.stdout).tokens).toEqual([{ name: 'ada', role: 'operator' }]);
    expect((await cli(['token', 'add', 'ada', '--role', 'reader'], { env })).code).toBe(64);
    expect((await cli(['token', 'add', 'bob', '--role', 'root'], { env })).code).toBe(64);
    expect((await cli(['token', 'remove', 'bob'], { env })).code).toBe(64);
    expect((await cli(['token', 'remove', 'ada'], { env })).code).toBe(0);
    expect(parseTokens(readFileSync(file, 'utf8'), file)).toEqual([]);
  });
});

test('roles: each with all that those before it may', () => {
  expect(mayDo('admin', 'reader') && mayDo('operator', 'operator')).toBe(true);
  expect(mayDo('reader', 'operator') || mayDo('operator', 'admin') || mayDo(null, 'reader')).toBe(
    false,
  );
});

test('hosts: loopback by any of its names, else addresses and what is given', () => {
  const local = hostRule('127.0.0.1', ['Fly.Example']);
  expect(local.loopback && hostRule('::1', []).loopback && hostRule('localhost', []).loopback).toBe(
    true,
  );
  expect(['localhost:1', '127.9.9.9', '[::1]', 'fly.example:80'].every(local.allows)).toBe(true);
  expect(
    [undefined, '', '1.2.3.4', 'fly.example.', '127.0.0.1x', '[::1].evil'].some(local.allows),
  ).toBe(false);
  const open = hostRule('0.0.0.0', []);
  expect([open.loopback, open.allows('1.2.3.4:80'), open.allows('evil.example')]).toEqual([
    false,
    true,
    false,
  ]);
});

test('an origin is its own by host and port, whatever the scheme', () => {
  expect(isOwnOrigin('https://a.example', 'a.example')).toBe(true);
  expect(isOwnOrigin('http://A.example:9464', 'a.example:9464')).toBe(true);
  for (const origin of ['null', 'http://b.example', 'http://a.example:1', 'file://a.example', '']) {
    expect([origin, isOwnOrigin(origin, 'a.example')]).toEqual([origin, false]);
  }
});

test('a client has its own allowance, and all together one', () => {
  const limit = createClientLimit({ rate: 1, capacity: 5 }, { rate: 10, capacity: 8 });
  const many = (name: string) => Array.from({ length: 20 }, () => limit.take(name, 0).allowed);
  const allowed = (name: string) => many(name).filter(Boolean).length;
  expect([allowed('a') <= 6, allowed('b') <= 6, allowed('c')]).toEqual([true, true, 0]);
});

test('points: the newest of each, within a bound of all; none ahead of the clock', () => {
  const ring = createRing(100, 200);
  const point = (timeMs: number) => ({ timeMs }) as SeriesPoint;
  for (let i = 1; i <= 300; i++) ring.add('a', point(i));
  expect(ring.since('a', 0).map(({ timeMs }) => timeMs)[0]).toBe(201);
  ring.add('a', point(250));
  expect(ring.since('a', 0).at(-1)!.timeMs).toBe(250);
  expect(ring.since('a', 240)).toHaveLength(11);
  for (const name of ['b', 'c', 'd', 'e']) for (let i = 1; i <= 100; i++) ring.add(name, point(i));
  expect(ring.since('e', 0)).toHaveLength(60);
  ring.forget('a');
  expect(ring.since('a', 0)).toEqual([]);
});

test('a channel keeps so much for who comes back, and begins anew for who was away longer', () => {
  const quiet = { atMs: 0, lookMs: 1, everyMs: 1, redisAway: null };
  const channel = createChannel(() => ({ ...quiet, limiters: [] }));
  channel.ready();
  const join = (lastId: string | undefined) => {
    const texts: string[] = [];
    const send = (bytes: Uint8Array) => texts.push(new TextDecoder().decode(bytes));
    const leave = channel.join(lastId, { send, end: () => {} });
    return { texts, leave };
  };
  const tick = () => channel.tell('tick', quiet);
  const first = join(undefined);
  tick();
  const id = /^id: (\S+)/.exec(first.texts.at(-1)!)![1]!;
  first.leave();
  for (let i = 0; i < 256; i++) tick();
  const back = join(id);
  expect([back.texts.length, back.texts[0]!.includes('event: tick')]).toEqual([256, true]);
  back.leave();
  tick();
  expect(join(id).texts[0]).toContain('event: snapshot');
});
