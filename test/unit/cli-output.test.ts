/** Output rules of every command: streams, colour, JSON, hostile text, lengths of time, exit codes. */
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { problemAnswer } from '../../src/api/problem.js';
import { parseRevision, parseSince, parseSpan } from '../../src/cli/options.js';
import { createIo, UsageError, wantsColour } from '../../src/cli/output.js';
import { clean, closest, guardTerminal, number, safeJson, span } from '../../src/cli/text.js';
import { FlyballError, PolicyError } from '../../src/errors.js';
import { describeFault, exitFor } from '../../src/faults.js';
import { inertLine } from '../../src/unsafe.js';

function capture(tty = false, env: NodeJS.ProcessEnv = {}) {
  const stream = () => Object.assign(new PassThrough(), { isTTY: tty, columns: 80 });
  const stdin = stream();
  const stdout = stream();
  const stderr = stream();
  const io = createIo({ stdin, stdout, stderr, env });
  return {
    io,
    stdin,
    out: () => String(stdout.read() ?? ''),
    err: () => String(stderr.read() ?? ''),
  };
}

describe('colour', () => {
  const tty = { isTTY: true };
  const pipe = { isTTY: false };
  test.each([
    ['a terminal', tty, {}, undefined, true],
    ['a pipe', pipe, {}, undefined, false],
    ['a pipe under CI', pipe, { CI: 'true' }, undefined, false],
    ['NO_COLOR', tty, { NO_COLOR: '1' }, undefined, false],
    ['an empty NO_COLOR', tty, { NO_COLOR: '' }, undefined, true],
    ['TERM=dumb', tty, { TERM: 'dumb' }, undefined, false],
    ['FORCE_COLOR into a pipe', pipe, { FORCE_COLOR: '1' }, undefined, true],
    ['FORCE_COLOR=0', tty, { FORCE_COLOR: '0' }, undefined, false],
    ['NO_COLOR over FORCE_COLOR', tty, { NO_COLOR: '1', FORCE_COLOR: '1' }, undefined, false],
    ['--no-color over all', tty, { FORCE_COLOR: '1' }, false, false],
  ])('%s', (_name, stream, env, flag, wanted) => {
    expect(wantsColour(stream, env, flag)).toBe(wanted);
  });

  test('is decided for each stream apart', () => {
    const stdout = Object.assign(new PassThrough(), { isTTY: false });
    const stderr = Object.assign(new PassThrough(), { isTTY: true });
    const io = createIo({ stdout, stderr, env: {} });
    expect(io.c.red('x')).toBe('x');
    expect(io.ce.red('x')).toBe('\x1b[31mx\x1b[39m');
  });
});

describe('hostile text', () => {
  const evil = 'a\x1b[2J\x1b]0;owned\x07b\r\nc\u202egnp\u200b\x9bd';
  test('clean shows control characters and direction marks instead of passing them on', () => {
    expect(clean(evil)).toBe('a\\x1b[2J\\x1b]0;owned\\x07b\\r\\nc\\u202egnp\\u200b\\x9bd');
    expect(clean('Grüße 東京 €')).toBe('Grüße 東京 €');
  });
  test('the last gate lets only colours and line breaks of our own through', () => {
    expect(guardTerminal('\x1b[31mred\x1b[39m\n\x1b[2Jx')).toBe('\x1b[31mred\x1b[39m\n\\x1b[2Jx');
  });
  test('a line of the log holds none either, and stays the JSON that it was', () => {
    const said = { event: 'signal_away', msg: 'a\u001b[2J\u009b31m\u202eb\nc' };
    const line = `${JSON.stringify(said)}\n`;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(inertLine(line).slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(inertLine(line).at(-1)).toBe('\n');
    expect(JSON.parse(inertLine(line))).toEqual(said);
  });
  test('JSON stays valid and holds no raw control character', () => {
    const text = safeJson({ evil });
    expect(JSON.parse(text)).toEqual({ evil });
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e\u200b]/u);
  });
});

describe('the io of a command', () => {
  test('stdout is the result, stderr is talk, and --quiet silences talk but no warning', () => {
    const { io, out, err } = capture();
    io.flags.quiet = true;
    io.out('result');
    io.say('talk');
    io.warn('careful');
    expect(out()).toBe('result\n');
    expect(err()).toBe('warning: careful\n');
  });

  test('an error names its code once, hides passwords, and in JSON mode is an object on stdout too', () => {
    const { io, out, err } = capture();
    io.flags.json = true;
    const code = io.fail(
      new FlyballError('FLYBALL_E_REDIS_UNREACHABLE', 'redis://ada:s3cret@h:1 does not answer'),
    );
    expect(code).toBe(75);
    expect(err()).toBe('error: FLYBALL_E_REDIS_UNREACHABLE: redis://ada:***@h:1 does not answer\n');
    expect(JSON.parse(out())).toEqual({
      schema: 1,
      error: {
        code: 'FLYBALL_E_REDIS_UNREACHABLE',
        message: 'redis://ada:***@h:1 does not answer',
      },
    });
  });

  test('a policy error carries all its faults', () => {
    const { io, out, err } = capture();
    io.flags.json = true;
    const faults = [
      { file: 'a.ts', field: 'bounds.rate', message: 'min > max' },
      { file: 'b.ts', field: '', message: 'syntax' },
    ];
    expect(io.fail(new PolicyError(faults))).toBe(78);
    expect(JSON.parse(out()).error.faults).toEqual(faults);
    expect(err().match(/FLYBALL_E_POLICY_INVALID/g)).toHaveLength(2);
  });

  test('a right that Redis refuses is told as such', () => {
    const { io, err } = capture();
    expect(
      io.fail(new Error("NOPERM this user has no permissions to run the 'hset' command")),
    ).toBe(1);
    expect(err()).toMatch(/FLYBALL_E_REDIS_DENIED.*users\.acl/);
  });

  test.each([
    [
      "READONLY You can't write against a read only replica.",
      1,
      /REDIS_CANNOT_WRITE.*Nothing was written/,
    ],
    ['OOM command not allowed', 1, /REDIS_CANNOT_WRITE/],
    ['Connection is closed.', 75, /REDIS_LOST.*went away.*may have been written or not/],
    ['Command timed out', 75, /REDIS_LOST/],
    [
      'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
      75,
      /REDIS_LOST: Redis went away while the command ran: no connection\. A change/,
    ],
    ['x is not a function', 1, /FLYBALL_E_INTERNAL: x is not a function\. FLYBALL_DEBUG=1/],
  ])('the fault %j is told in words that say what to do', (says, exit, told) => {
    const { io, err } = capture();
    expect(io.fail(new Error(says))).toBe(exit);
    expect(err()).toMatch(told);
  });

  test('of what only reads none is told that a change may have been written', async () => {
    const reads = { reads: true };
    const told = describeFault(new Error('Command timed out'), reads).message;
    expect(told).toBe(
      'Redis went away while the command ran: Command timed out. Ask again once Redis answers.',
    );
    const problem = await problemAnswer(new Error('Command timed out'), reads).json();
    expect(problem).toMatchObject({ status: 503, detail: told });
    expect(describeFault(new Error('OOM'), reads)).toEqual(describeFault(new Error('OOM')));
  });

  test('it may ask only at a terminal, without --no-input and --json', () => {
    expect(capture(false).io.interactive).toBe(false);
    const { io } = capture(true);
    expect(io.interactive).toBe(true);
    io.flags.input = false;
    expect(io.interactive).toBe(false);
    io.flags.input = true;
    io.flags.json = true;
    expect(io.interactive).toBe(false);
  });

  test.each([
    ['y\n', true],
    ['YES\n', true],
    ['\n', false],
    ['no\n', false],
  ])('the answer %j means %s', async (typed, wanted) => {
    const { io, stdin, err } = capture(true);
    const answer = io.confirm('Do it?');
    stdin.write(typed);
    expect(await answer).toBe(wanted);
    expect(err()).toMatch(/Do it\? \[y\/N\]/);
  });

  test('end of input is no', async () => {
    const { io, stdin } = capture(true);
    const answer = io.confirm('Do it?');
    stdin.end();
    expect(await answer).toBe(false);
  });

  test('a table has its columns aligned and no trailing blanks', () => {
    const { io } = capture();
    expect(
      io.table(
        ['A', 'B'],
        [
          ['long name', '1'],
          ['x', '22'],
        ],
      ),
    ).toBe('A          B\nlong name  1\nx          22');
  });
});

test('exit codes follow the kind of error', () => {
  expect(exitFor(new UsageError('x').code)).toBe(64);
  expect(exitFor('FLYBALL_E_NAME_INVALID')).toBe(64);
  expect(exitFor('FLYBALL_E_CONFIG_INVALID')).toBe(78);
  expect(exitFor('FLYBALL_E_ACTUATE_REFUSED')).toBe(1);
});

describe('arguments', () => {
  test.each([
    ['30s', 30_000],
    ['1h30m', 5_400_000],
    ['0.5h', 1_800_000],
    ['7d', 604_800_000],
  ])('%s is %i ms', (text, ms) => {
    expect(parseSpan(text)).toBe(ms);
  });
  test.each(['10', '2 hours', '-5m', '500ms', '366d', '', '1h 30m', 'h', '1e3s'])(
    'the length of time %j is refused, with what to write',
    (text) => {
      expect(() => parseSpan(text)).toThrow(/Write 30s, 15m, 2h, 1h30m or 7d/);
    },
  );
  test('--since takes a length of time back or an ISO time', () => {
    expect(parseSince('2h')).toEqual({ agoMs: 7_200_000 });
    expect(parseSince('2026-05-04T13:00:00Z')).toEqual({ atMs: 1_777_899_600_000 });
    expect(() => parseSince('yesterday')).toThrow(/Write a length of time back/);
  });
  test('a revision is a whole number from 1', () => {
    expect(parseRevision('41')).toBe(41);
    expect(parseRevision('r41')).toBe(41);
    for (const text of ['0', '-1', '1.5', 'x', '']) expect(() => parseRevision(text)).toThrow();
  });
});

test('numbers and spans read as people write them', () => {
  expect([104, 7.254, 0.05, 1234.56, 1e-9].map(number)).toEqual([
    '104',
    '7.25',
    '0.05',
    '1234.6',
    '0',
  ]);
  expect([999, 12_400, 185_000, 3_720_000, 180_000_000].map(span)).toEqual([
    '999 ms',
    '12 s',
    '3 min 5 s',
    '1 h 2 min',
    '2 d 2 h',
  ]);
});

test('did-you-mean takes swapped and missing letters, and nothing far away', () => {
  expect(closest('chekcout', ['checkout', 'search'])).toBe('checkout');
  expect(closest('serch', ['checkout', 'search'])).toBe('search');
  expect(closest('billing', ['checkout', 'search'])).toBeUndefined();
});
