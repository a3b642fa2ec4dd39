/** The live table without a terminal: keys, cursor and search, what fits on a screen of any size, hostile text. */
import fc from 'fast-check';
import pc from 'picocolors';
import { describe, expect, test } from 'vitest';
import { sparkline } from '../../src/cli/top-columns.js';
import { draw, type Page } from '../../src/cli/top-draw.js';
import { keysOf } from '../../src/cli/top-keys.js';
import {
  emptyModel,
  LOOKS,
  looked,
  pressed,
  rowsOf,
  type TopModel,
} from '../../src/cli/top-model.js';
import { type StatusView, statusView } from '../../src/view/status.js';
import { sumSeconds } from '../../src/view/traffic.js';

const bare = statusView({
  ...{ address: { name: 'x' }, params: null, nowMs: 0, policy: null, owner: null, status: null },
  ...{ traffic: sumSeconds([], 5), newest: null },
});
const view = (limiter: string, more: Partial<StatusView> = {}): StatusView => ({
  ...bare,
  ...{ limiter, managed: true, mode: 'auto', state: 'closed', revision: 7 },
  inForce: { rate: 118, capacity: 200, inFlightMax: 44 },
  bounds: { rate: [20, 400], capacity: [1, 400], inFlight: [2, 64] },
  ...more,
});
const offered = (n: number, denied = 0) => ({
  ...bare.traffic,
  ...{ offeredPerSecond: n, admittedPerSecond: n - denied, deniedPerSecond: { rate: denied } },
  inFlight: 12,
});

const model = (views: StatusView[]) => looked(emptyModel(), views, 1_800_000_000_000);
const page = (more: Partial<Page> = {}): Page => ({
  ...{ columns: 200, rows: 20, c: pc.createColors(false), unicode: true },
  ...more,
});
/** Keys one after the other. */
const press = (from: TopModel, keys: string[]) =>
  keys.reduce((now, key) => pressed(now, key, 5)[0], from);

describe('keys', () => {
  test.each([
    ['\x1b[A\x1b[B\x1bOA', ['up', 'down', 'up']],
    ['jk\r', ['j', 'k', 'enter']],
    ['\x1b', ['escape']],
    ['\x1b[1;5C\x1b[200~x', ['x']],
    ['\x7f\x03\x1a', ['backspace', 'ctrl-c', 'ctrl-z']],
    ['ü€😀', ['ü', '€', '😀']],
    ['\x1b[5~\x1b[6~\x1b[H\x1b[F', ['page-up', 'page-down', 'home', 'end']],
  ])('%j is %j', (text, keys) => {
    expect(keysOf(text)).toEqual(keys);
  });

  test('whatever comes, it ends, and no key is a control character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        for (const key of keysOf(text)) expect(key.charCodeAt(0)).toBeGreaterThanOrEqual(32);
      }),
    );
  });
});

describe('the model', () => {
  const three = model([
    view('orders', { traffic: offered(50, 1) }),
    view('checkout', { traffic: offered(10, 9) }),
    view('refunds', { traffic: offered(90) }),
  ]);

  test('the cursor moves, stops at the ends, and stays on its limiter in any order', () => {
    expect(rowsOf(three).map(({ limiter }) => limiter)).toEqual(['checkout', 'orders', 'refunds']);
    expect(three.cursor).toBe('checkout');
    expect(press(three, ['down', 'j', 'j', 'j']).cursor).toBe('refunds');
    expect(press(three, ['G', 'k']).cursor).toBe('orders');
    expect(press(three, ['end', 'page-up', 'up']).cursor).toBe('checkout');
    const byOffered = press(three, ['j', 's']);
    expect(rowsOf(byOffered).map(({ limiter }) => limiter)).toEqual([
      'refunds',
      'orders',
      'checkout',
    ]);
    expect(byOffered.cursor).toBe('orders');
    expect(rowsOf(press(byOffered, ['s']))[0]!.limiter).toBe('checkout');
    expect(press(byOffered, ['s', 's', 's']).order).toBe('name');
  });

  test('a limiter that is gone gives the cursor to the first', () => {
    const gone = looked(press(three, ['G']), [view('orders')], 1);
    expect(gone.cursor).toBe('orders');
    expect(looked(gone, [], 2).cursor).toBeNull();
    expect(pressed(looked(gone, [], 2), 'p', 5)[1]).toBeNull();
  });

  test('a search narrows as it is typed; enter keeps it, escape shows all; its letters are no verbs', () => {
    const typed = press(three, ['/', 'p', 'f', 'backspace', 'backspace', 'e', 'f']);
    expect(rowsOf(typed).map(({ limiter }) => limiter)).toEqual(['refunds']);
    expect(typed).toMatchObject({ searching: true, cursor: 'refunds', question: null });
    expect(press(typed, ['enter'])).toMatchObject({ searching: false, filter: 'ef' });
    expect(rowsOf(press(typed, ['enter', 'escape']))).toHaveLength(3);
    expect(press(typed, ['ctrl-u', 'Z', 'Z']).cursor).toBeNull();
  });

  test.each([
    ['q', 'quit'],
    ['ctrl-c', 'quit'],
    ['ctrl-z', 'stop'],
    ['ctrl-l', 'redraw'],
    ['p', 'pin'],
    ['f', 'freeze'],
    ['l', 'release'],
    ['t', 'trip'],
    ['b', 'rollback'],
    ['z', null],
  ])('%s is %s', (key, wish) => {
    expect(pressed(three, key, 5)[1]).toBe(wish);
  });

  test('help closes by any key, and by none of them something is changed', () => {
    const helped = press(three, ['?']);
    expect(helped.help).toBe(true);
    expect(pressed(helped, 't', 5)).toEqual([{ ...helped, help: false }, null]);
  });

  test('as many looks as a sparkline shows are kept', () => {
    let now = emptyModel();
    for (let i = 0; i < 3 * LOOKS; i++) now = looked(now, [view('a', { traffic: offered(i) })], i);
    expect(now.history.get('a')).toEqual(Array.from({ length: LOOKS }, (_, i) => 2 * LOOKS + i));
  });
});

describe('the screen', () => {
  test('what is in force, its bounds, in flight, traffic, the worst signal, holds', () => {
    const worst = { signal: 'p95', value: 400, setpoint: 250, ratio: 1.6, unit: 'ms', fresh: true };
    const hold = { kind: 'pinned', by: 'ada', untilMs: 1, leftMs: 59 * 60_000, breakerHeld: false };
    const lines = draw(
      model([
        view('orders', {
          traffic: offered(400, 282),
          worst: worst as StatusView['worst'],
          holds: [hold as StatusView['holds'][number]],
        }),
      ]),
      page({ columns: 220 }),
    );
    expect(lines).toHaveLength(20);
    expect(lines[0]).toMatch(/^flyball top {2}\d\d:\d\d:\d\d {2}1 limiter {2}by name$/);
    expect(lines[2]).toMatch(/^ {2}LIMITER .*BREAKER .*RATE\/S .*WORST SIGNAL .*HOLD/);
    expect(lines[3]).toMatch(
      /^▸ orders +closed +auto +118 of 20-400 +12 \/ 44 +400 +118 +282 +█ +p95 400 ms ×1\.6 +pinned 59 min/,
    );
    expect(lines.at(-1)).toContain('p pin  f freeze/thaw');
  });

  test('no line is wider and no screen higher than it is, whatever its size and its content', () => {
    const name = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,63}$/);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 240 }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(name, { maxLength: 60 }),
        fc.string({ unit: 'binary', maxLength: 30 }),
        fc.boolean(),
        fc.boolean(),
        (columns, rows, names, text, help, away) => {
          const hostile = {
            kind: 'pinned',
            by: text,
            untilMs: null,
            leftMs: null,
            breakerHeld: false,
          };
          const worst = { signal: text, value: 1, setpoint: 1, ratio: 1, unit: 'ms', fresh: true };
          const views = [...new Set(names)].map((one) =>
            view(one, {
              worst: worst as StatusView['worst'],
              holds: [hostile as StatusView['holds'][number]],
            }),
          );
          const shown = { ...model(views), help, away: away ? text : null, message: text };
          for (const question of [null, { label: text, lines: [text, text], typed: text }]) {
            const lines = draw({ ...shown, question }, page({ columns, rows }));
            expect(lines).toHaveLength(rows);
            for (const line of lines) {
              expect([...line].length).toBeLessThanOrEqual(columns);
              // biome-ignore lint/suspicious/noControlCharactersInRegex: none may reach the terminal.
              expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a narrow screen keeps name, breaker, rate and in flight; the cursor is always in sight', () => {
    const many = model(
      Array.from({ length: 100 }, (_, i) => view(`l${String(i).padStart(3, '0')}`)),
    );
    const lines = draw(press(many, ['end']), page({ columns: 80, rows: 10 }));
    expect(lines[2]).toMatch(/LIMITER +BREAKER +RATE\/S +IN FLIGHT/);
    expect(lines.filter((line) => line.startsWith('▸'))).toEqual([
      expect.stringMatching(/^▸ l099 /),
    ]);
  });

  test('Redis away is said, with the time of what is shown; ASCII where blocks are not known', () => {
    const away = {
      ...model([view('orders', { traffic: offered(5) })]),
      away: 'connect ECONNREFUSED',
    };
    const lines = draw(away, page({ unicode: false }));
    expect(lines[0]).toMatch(
      /^Redis does not answer: shown: \d\d:\d\d:\d\d\. Trying again\. connect/,
    );
    expect(lines[3]).toMatch(/^> orders .* # /);
    expect(lines.join('\n')).toMatch(/^[\x20-\x7e\n×]*$/);
  });

  test('nothing known, nothing found, too small', () => {
    expect(draw(looked(emptyModel(), [], 1), page())[2]).toContain('No limiter is known');
    const none = press(model([view('orders')]), ['/', 'z']);
    expect(draw(none, page()).join('\n')).toContain('No limiter has this in its name');
    expect(draw(none, page({ columns: 30, rows: 4 }))[0]).toBe('flyball top: make the window l');
  });

  test('a sparkline: the highest is full, nothing is the lowest, no number is no picture', () => {
    expect(sparkline([0, 50, 100], true)).toBe('▁▅█');
    expect(sparkline([0, 0], true)).toBe('▁▁');
    expect(sparkline([0, 50, 100], false)).toBe('_=#');
    expect(sparkline([], true)).toBe('');
  });
});
