/** Whose turn it is: of a thousand limiters those in sight, those in which something has changed, and in turns the rest. */
import { beforeEach, describe, expect, test } from 'vitest';
import { createRota, type Rota } from '../../src/api/rota.js';
import { createShown, MOST_OF_ONE, SHOWN_MS } from '../../src/api/shown.js';
import type { Watched } from '../../src/api/watched.js';
import { type ManualClock, manualClock } from '../../src/clock.js';
import type { LimiterStatus } from '../../src/report/status.js';
import { createOwnStatuses, type OwnStatuses } from '../../src/view/own-statuses.js';

const LIMITERS = 1000;
const names = Array.from({ length: LIMITERS }, (_, i) => `l${String(i).padStart(4, '0')}`);
let clock: ManualClock;
let own: OwnStatuses;
let shown: ReturnType<typeof createShown>;
let heard: string[];
let rota: Rota;

function status(more: Partial<LimiterStatus> = {}): LimiterStatus {
  const signals = { p95: { value: 12.5, fresh: true, ageMs: 0, count: 9 } };
  return {
    ...{ schema: 1, tickMs: 1000, epoch: 1, revision: 1, file: 'same', faults: [] },
    sample: { signals, inForce: { state: 'closed', held: 'none' } },
    decision: { state: 'closed', sentence: 'steady' },
    ...more,
  } as unknown as LimiterStatus;
}

beforeEach(() => {
  clock = manualClock();
  own = createOwnStatuses(clock);
  shown = createShown(clock);
  heard = [''];
  const watched = new Map(
    names.map((name) => [name, { address: { name }, view: {} } as unknown as Watched]),
  );
  rota = createRota({ watched, hears: (name) => heard.includes(name), shown, own });
  // All are read once at the start.
  rota.take();
  own.want(new Set(), true);
});

/** One look, and what it is at. */
function look(): string[] {
  const next = rota.next();
  const taken = rota.take().map(({ address }) => address.name);
  expect(new Set(taken)).toEqual(next);
  expect(taken).toHaveLength(next.size);
  for (const name of taken) own.read(name);
  return taken;
}

const looks = (count: number) => Array.from({ length: count }, look);
const allLead = () => {
  for (const name of names) own.tell(name, status());
};

test('led by others: each in four looks, no more than 250 at once', () => {
  expect(rota.looks).toBe(4);
  const taken = looks(4);
  expect(taken.map((one) => one.length)).toEqual([250, 250, 250, 250]);
  expect(taken.flat().sort()).toEqual(names);
});

test('led here: each in 16 looks, while this daemon goes on to tell of it', () => {
  allLead();
  expect(rota.looks).toBe(16);
  const taken = looks(16);
  expect(Math.max(...taken.map((one) => one.length))).toBeLessThanOrEqual(63);
  expect(taken.flat().sort()).toEqual(names);
  clock.advance(3000);
  expect(rota.looks).toBe(4);
  expect(looks(4).flat().sort()).toEqual(names);
});

test('of few limiters each at each look', () => {
  const few = new Map(
    names.slice(0, 64).map((name) => [name, { address: { name }, view: {} } as unknown as Watched]),
  );
  const small = createRota({ watched: few, hears: (name) => name === '', shown, own });
  for (const name of few.keys()) own.tell(name, status());
  expect([small.looks, small.take().length, small.take().length]).toEqual([1, 64, 64]);
});

describe('in sight', () => {
  test('at each look until it is not said again; what nobody knows is nothing', () => {
    allLead();
    shown.see(['l0500', 'l0999', 'nobody']);
    for (const taken of looks(3)) expect(taken).toEqual(expect.arrayContaining(['l0500', 'l0999']));
    clock.advance(SHOWN_MS - 1);
    expect(shown.names()).toEqual(['l0500', 'l0999', 'nobody']);
    shown.see(['l0999']);
    clock.advance(1);
    expect(shown.names()).toEqual(['l0999']);
  });

  test('of many who look the latest count, within a bound for all', () => {
    for (let i = 0; i < 6; i++) shown.see(names.slice(100 * i, 100 * i + MOST_OF_ONE));
    expect(shown.names()).toEqual(names.slice(400, 600));
  });

  test('while nobody follows all it counts for nothing; one that is followed alone is always read', () => {
    shown.see(['l0500']);
    heard = ['l0007'];
    expect(looks(2)).toEqual([['l0007'], ['l0007']]);
  });
});

describe('what stirs', () => {
  const changes: [string, Partial<LimiterStatus>][] = [
    ['a change', { revision: 2 }],
    ['params that began anew', { epoch: 2 }],
    ['a breaker', { decision: { state: 'open' } as LimiterStatus['decision'] }],
    ['a file that differs', { file: 'drift' }],
    ['a file that does not load', { faults: ['policy.ts: rate'] }],
    [
      'a hold',
      {
        sample: { signals: {}, inForce: { held: 'frozen' } } as unknown as LimiterStatus['sample'],
      },
    ],
    [
      'a signal that is lost',
      {
        sample: {
          ...status().sample,
          signals: { p95: { value: 12.5, fresh: false, ageMs: 0, count: 9, reason: 'stale' } },
        },
      },
    ],
    [
      'an objective missed for long',
      {
        sample: {
          ...status().sample,
          signals: { p95: { value: 300, fresh: true, ageMs: 0, count: 9, missedMs: 3000 } },
        },
      },
    ],
  ];
  test.each(changes)('%s is read at the next look, by what was told, once', (_what, change) => {
    allLead();
    const last = names.at(-1)!;
    own.tell(last, status(change));
    own.want(rota.next(), true);
    expect(own.of(last)).toMatchObject(change);
    expect(look()).toContain(last);
    own.want(rota.next(), true);
    own.tell(last, status(change));
    expect(looks(2).flat()).not.toContain(last);
  });

  test('numbers that play about are not', () => {
    allLead();
    const { sample } = status();
    for (const name of names) {
      const p95 = { value: 260, fresh: true, ageMs: 1, count: 10, missedMs: 2000 };
      own.tell(name, status({ atMs: 5, sample: { ...sample, signals: { p95 } } }));
    }
    expect([...own.stirred]).toEqual([]);
  });

  test('of all at once some at a time, who waits longest first', () => {
    allLead();
    const waits = names.slice(0, 300);
    for (const name of waits) own.tell(name, status({ revision: 2 }));
    const taken = looks(3);
    for (const one of taken) expect(one.length).toBeLessThanOrEqual(163);
    expect(taken.flat()).toEqual(expect.arrayContaining(waits));
    expect([...own.stirred]).toEqual([]);
  });

  test('who follows one alone hears nothing of the others, and nothing of them is kept', () => {
    allLead();
    own.tell('l0001', status({ revision: 2 }));
    own.want(new Set(['l0002']), false);
    own.tell('l0001', status({ revision: 3 }));
    own.tell('l0002', status({ revision: 3 }));
    expect([own.stirred.size, own.leads('l0001'), own.of('l0001')]).toEqual([0, false, null]);
    expect(own.of('l0002')).toMatchObject({ revision: 3 });
  });
});
