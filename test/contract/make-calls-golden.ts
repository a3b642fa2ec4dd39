/** Writes calls.json: raw calls of the scripts that take.json has none of, and what a fresh server answers to them. */
// After a deliberate change of the contract: `npx jiti test/contract/make-calls-golden.ts`, then
// `npx biome format --write test/contract`, and read the difference.
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { TakeRequest } from '../../src/redis/calls.js';
import { drawCall } from '../../src/redis/draw.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type RefundRequest, refundCall } from '../../src/redis/refund.js';
import { inflightScript, slotsScript, topScript } from '../../src/redis/scripts.gen.js';
import { takeCall } from '../../src/redis/take-call.js';
import { togetherCall } from '../../src/redis/together.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { at, FALLBACK, given, keys, redis, send, step, T0, write } from './recorder.js';

const NUMBERS = { rate: 10, capacity: 20, inFlightMax: 8, subjectRate: 2, subjectCapacity: 4 };

/** Takes from buckets, in one call. */
const takes = (what: string, atS: number, ...list: TakeRequest[]) =>
  send(
    what,
    takeCall({
      ...{ keys, takes: list, chargeByUs: 'any', shadow: false, fallback: NUMBERS },
      nowUs: at(atS),
    }),
  );
const want = (subject: string | null, cost: number): TakeRequest => ({
  ...{ subject, cost, priority: 'default' },
});
/** What a take at that time took, given back by its mark. */
const back = (
  subject: string | null,
  cost: number,
  atS: number,
  mark: string | null,
  more: Partial<RefundRequest> = {},
): RefundRequest => ({
  ...{ subject, cost, atUs: at(atS), epoch: 1_000_000, generation: 0, terms: undefined, mark },
  ...more,
});
const refunds = (what: string, atS: number, list: RefundRequest[], more = {}) =>
  send(
    what,
    refundCall({
      ...{ keys, refunds: list, dueUs: null, shadow: false, fallback: NUMBERS, nowUs: at(atS) },
      ...more,
    }),
  );

// The other algorithms: ten in ten seconds, of a subject three.
const TEN: AlgorithmTerms[] = [
  { algorithm: 'sliding-log', windowMs: 10_000, cells: 0 },
  { algorithm: 'sliding-counter', windowMs: 10_000, cells: 5 },
  { algorithm: 'fixed-window', windowMs: 10_000, cells: 0 },
  { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 },
];
for (const terms of TEN) {
  const { algorithm } = terms;
  await given(() =>
    seedParams(
      redis,
      keys,
      { rate: 1, capacity: 10, subjectRate: 0.3, subjectCapacity: 3, ...terms },
      { nowUs: T0 },
    ),
  );
  const windows = (what: string, atS: number, list: TakeRequest[], more = {}) =>
    send(
      `${algorithm}: ${what}`,
      takeCall({
        ...{ keys, takes: list, chargeByUs: 'any', shadow: false, fallback: NUMBERS },
        ...{ terms, nowUs: at(atS), ...more },
      }),
    );
  const counts = (what: string, atS: number, list: RefundRequest[]) =>
    refunds(
      `${algorithm}: ${what}`,
      atS,
      list.map((each) => ({ ...each, terms })),
    );
  await windows('a peek', 0, [want('a', 0), want(null, 0)]);
  await windows('a subject’s three, and seven more', 0, [
    ...[want('a', 2), want('a', 1), want('a', 1), want('b', 2.5), want(null, 4.5)],
    ...[want('b', 1), want(null, 1)],
  ]);
  await windows('bad costs, and one above the most', 0, [
    ...[want(null, -1), want(null, 1e-7), want(null, 11)],
  ]);
  await windows('too late', 0, [want(null, 1)], { chargeByUs: T0 - 1 });
  await windows('the shadow’s keys', 0, [want(null, 1)], { shadow: true });
  await windows('later', 4.5, [want('a', 1), want(null, 1), want(null, 1)]);
  if (algorithm !== 'leaky-bucket') {
    await counts('given back, once', 5, [back('a', 2, 0, 'm1'), back('a', 2, 0, 'm1')]);
    await windows('there again', 5, [want('a', 0), want('a', 2), want(null, 1)]);
  }
  await windows('the next ten seconds', 10, [want('a', 3), want('b', 2), want(null, 9)]);
  await windows('half of them later', 15, [want('a', 1), want('b', 1), want(null, 3)]);
  if (algorithm !== 'leaky-bucket') {
    await counts('what no window counts any more', 26, [back('b', 2.5, 0, 'm2')]);
  }
  await windows('long after', 60, [want('a', 0), want(null, 10)]);
  await windows('a clock set back', -3600, [want('a', 1), want(null, 1)]);
}

await given(() =>
  seedParams(
    redis,
    keys,
    { rate: 1, capacity: 10, subjectRate: 0.5, subjectCapacity: 5 },
    { nowUs: T0 },
  ),
);
await takes('to be given back', 0, want('a', 3), want('b', 2), want(null, 5));
await refunds('each once by its mark, without one as often as it is asked', 1, [
  ...[back('a', 3, 0, 'm1'), back('a', 3, 0, 'm1')],
  ...[back(null, 1, 0, null), back(null, 1, 0, null)],
]);
await refunds('after the latest time', 1, [back('b', 2, 0, 'm2')], {
  dueUs: T0,
});
await refunds('of another epoch, and an hour after', 1, [
  ...[back('b', 2, 0, 'm3', { epoch: 999_999 }), back('b', 2, -3600, 'm4')],
]);
await takes('never above the capacity', 1, want('a', 0), want('b', 0), want(null, 0));
await refunds('more than it lacks', 2, [back('b', 2, 0, 'm5'), back('b', 2, 0, 'm6')]);
await takes('full', 2, want('b', 0), want(null, 0));

await given(() =>
  seedParams(
    redis,
    keys,
    {
      ...{ rate: 10, capacity: 40, subjectRate: 2, subjectCapacity: 8 },
      ...{ reserveDefault: 0.1, reserveSheddable: 0.5 },
    },
    { nowUs: T0 },
  ),
);
const draws = (
  what: string,
  atS: number,
  [total, ...subjects]: [wanted: number, back: number, subject?: string][],
  epoch = 1_000_000,
) =>
  send(
    what,
    drawCall({
      ...{ keys, epoch, nowUs: at(atS), total: { want: total![0], back: total![1] } },
      subjects: subjects.map(([wanted, unused, subject]) => ({
        ...{ want: wanted, back: unused, subject: subject! },
      })),
    }),
  );
await draws('what is wanted', 0, [
  [6, 0],
  [2, 0, 'a'],
  [1, 0, 'b'],
]);
await draws('at most half of what is left above the reserve', 0, [
  [100, 0],
  [100, 0, 'a'],
]);
await draws('unused ones return', 0.1, [
  [0, 5],
  [0, 1, 'a'],
]);
await draws('those of another epoch do not', 0.1, [[0, 5]], 999_999);
await takes('what is left for takes', 0.1, want('a', 0), want(null, 0));

await given(async () => {
  await seedParams(redis, keys, { rate: 10, capacity: 20 }, { nowUs: T0 });
  await changeParams(redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
});
await draws('nothing is drawn from an open breaker', 1, [[5, 0]]);

await given(() => seedParams(redis, keys, { rate: 10, inFlightMax: 3 }, { nowUs: T0 }));
const slots = (what: string, atS: number, op: string, ...ids: string[]) =>
  step(
    what,
    slotsScript as never,
    [keys.params, keys.slots, keys.inFlight],
    [String(at(atS)), FALLBACK, op, ...ids],
  );
await slots('three places', 0, 'hold', 'h1', 'h2', 'h3', 'h4');
await slots('returned once; of another holder nothing', 1, 'release', 'h1', 'h1', 'h9');
await slots('renewed, and a free one taken', 4, 'hold', 'h2', 'h4');
await slots('not renewed for five seconds: it is free', 5.5, 'hold', 'h5', 'h6');
await step(
  'shares of processes count too',
  inflightScript as never,
  [keys.params, keys.inFlight, keys.slots],
  [String(at(20)), 'p1', '2', '1', FALLBACK, '0'],
);
await slots('what they leave', 20, 'hold', 'h7', 'h8');

await given(() => seedParams(redis, keys, { rate: 10, capacity: 5 }, { nowUs: T0 }));
const other = limiterKeys({ name: 'other', group: 'golden' });
const sets = (what: string, atS: number, list: TakeRequest[][], chargeByUs: 'any' | number) =>
  send(
    what,
    togetherCall({
      limiters: [keys, other].map((each) => ({ keys: each, fallback: NUMBERS, shadow: false })),
      ...{ sets: list, chargeByUs, nowUs: at(atS) },
    }),
  );
const none = want(null, 1);
await sets(
  'all or none of two limiters; the second has no params',
  0,
  [
    [none, want('a', 3)],
    [none, want('a', 2)],
    [none, want('b', 4)],
    [want(null, 4), none],
    [want(null, 6), none],
    [want(null, 3), want(null, 2)],
  ],
  'any',
);
await sets('too late', 0, [[none, none]], T0 - 1);
await sets('half a second later', 0.5, [[want(null, 5), none]], 'any');

await given(async () => {});
const minute = keys.top(28_333_333);
const top = (what: string, ...pairs: [field: string, amount: number][]) =>
  step(what, topScript as never, [minute], ['3900000', '2', '9', ...pairs.flat().map(String)]);
await top(
  'a minute of what one process counted',
  ['n', 9],
  ['r', 9],
  ['t', 7],
  ['d', 2],
  ['t:a', 5],
);
await top(
  'another, too many subjects: the heaviest stay',
  ['t:b', 3],
  ['t:c', 1.5],
  ['d:a', 2],
  ['d:b', 1],
  ['t:d', 0.5],
);

await write('calls.json');
