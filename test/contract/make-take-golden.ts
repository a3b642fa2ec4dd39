/** Writes take.json: raw calls of the scripts and what a fresh server answers to them, for clients in any language. */
// After a deliberate change of the contract: `npx jiti test/contract/make-take-golden.ts`, then
// `npx biome format --write test/contract`, and read the difference.
import {
  effectiveScript,
  inflightScript,
  outcomeScript,
  subjectsScript,
  takeScript,
} from '../../src/redis/scripts.gen.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, given, keys, redis, S, step, T0, write } from './recorder.js';

async function takes(
  what: string,
  atS: number,
  list: [subject: string | null, take: string][],
  head = ['', '0'],
) {
  const bucket = head[1] === '1' ? keys.shadowBucket : keys.bucket;
  const own = head[1] === '1' ? keys.shadowSubjectBucket : keys.subjectBucket;
  const names = [
    keys.params,
    bucket,
    ...list.map(([subject]) => (subject === null ? bucket : own(subject))),
  ];
  const args = [
    String(T0 + Math.round(atS * S)),
    ...head,
    FALLBACK,
    ...list.map(([, take]) => take),
  ];
  await step(what, takeScript as never, names, args);
}

await given(() =>
  seedParams(
    redis,
    keys,
    {
      rate: 10,
      capacity: 20,
      inFlightMax: 6,
      subjectRate: 2,
      subjectCapacity: 4,
      reserveSheddable: 0.5,
    },
    { nowUs: T0 },
  ),
);
await takes('a peek', 0, [[null, '0']]);
await takes('all or none of the two buckets', 0, [
  ['a', '3'],
  ['a', '2'],
  ['b', '2'],
  [null, '1.5'],
]);
await takes('priorities', 0, [
  [null, '4 sheddable'],
  [null, '4'],
  [null, '1 critical'],
]);
await takes('bad costs, and one above the capacity', 0, [
  [null, '-1'],
  [null, '05'],
  [null, '1e3'],
  [null, 'nan'],
  [null, '21'],
]);
await takes('too late', 0, [[null, '1']], [String(T0 - 1), '0']);
await takes('only the time', 0, [[null, '1']], ['0', '0']);
await takes('the shadow’s buckets', 0, [[null, '1']], ['', '1']);
await takes('half a second later', 0.5, [
  ['a', '1'],
  [null, '14.5'],
]);
await takes('a clock set back', -3600, [
  ['a', '1'],
  [null, '1'],
]);
await takes('and going on from there', -3599.5, [
  ['a', '1'],
  [null, '5'],
]);
await step(
  'in flight',
  inflightScript as never,
  [keys.params, keys.inFlight, keys.slots],
  [String(T0), 'p1', '3', '1', FALLBACK, '0'],
);
await step(
  'in flight, a second process',
  inflightScript as never,
  [keys.params, keys.inFlight, keys.slots],
  [String(T0 + S), 'p2', '5', '1', FALLBACK, '0'],
);
await step(
  'effective in the glide',
  effectiveScript as never,
  [keys.params],
  [String(T0 + 75 * S)],
);

await given(async () => {
  await seedParams(redis, keys, { rate: 10, capacity: 20, probeRate: 2 }, { nowUs: T0 });
  await changeParams(redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
});
await takes('open', 1, [
  [null, '1'],
  [null, '0'],
]);
await takes('half-open by time alone', 5.5, [
  [null, '1'],
  [null, '1'],
  [null, '3'],
]);

await given(() =>
  seedParams(
    redis,
    keys,
    {
      ...{ rate: 10, capacity: 20, subjectRate: 2, subjectCapacity: 4, subjectRules: 1 },
      subjectTerms: 'max=2 on=paid reset=failed keep=60000 step=2:8:- step=3:8:4',
    },
    { nowUs: T0 },
  ),
);
/** The same takes, with the keys by which single subjects are known. */
async function known(what: string, atS: number, list: [subject: string | null, take: string][]) {
  const { index, shared } = keys.crowd('b', false);
  const names = [keys.params, keys.bucket, keys.owed(false), keys.overrides, index, shared];
  for (const key of [keys.subjectBucket, keys.standing]) {
    names.push(...list.map(([subject]) => (subject === null ? keys.bucket : key(subject))));
  }
  const head = [String(T0 + Math.round(atS * S)), '', '4', FALLBACK];
  await step(what, subjectsScript as never, names, [...head, ...list.map(([, take]) => take)]);
}
async function outcome(what: string, subject: string, name: string, id: string) {
  const own = [keys.subjectBucket(subject), keys.shadowSubjectBucket(subject)];
  const names = [keys.params, keys.standing(subject), keys.outcome(id), keys.overrides, ...own];
  await step(what, outcomeScript as never, names, [String(T0 + S), name, subject]);
}
await takes('something is known of single subjects: the other script decides', 0, [['a', '1']]);
await known('past the most two, newcomers share a bucket', 0, [
  ['a', '3'],
  ['b', '1'],
  ['c', '3'],
  ['d', '2'],
  ['a', '2'],
  [null, '1'],
]);
await outcome('paid once', 'a', 'paid', 'o1');
await outcome('the same order again', 'a', 'paid', 'o1');
await outcome('paid twice: more room', 'a', 'paid', 'o2');
await outcome('a name that no tier knows', 'a', 'payed', 'o3');
await known('what it held, and what its rate has paid', 2, [
  ['a', '5'],
  ['a', '6'],
]);
await outcome('paid three times: a rate too', 'a', 'paid', 'o5');
await outcome('one failure: as before', 'a', 'failed', 'o4');

await given(() =>
  seedParams(
    redis,
    keys,
    { rate: 10, capacity: 8, subjectRules: 1, subjectTerms: 'fair=1' },
    { nowUs: T0 },
  ),
);
const ones = (text: string): [string, string][] => [...text].map((subject) => [subject, '1']);
await known('fair shares: until the total refuses, nobody is held back', 0, ones('aaaaaaaaa'));
await known('from then on a take must leave what its subject owes', 0.5, ones('aaaabab'));
await known('what comes in pays all who owe alike', 0.8, [
  ...ones('abab'),
  [null, '1'],
  ['c', '0'],
]);
await known('the total refuses nobody for long enough: it is over', 4, ones('aaaaaaaa'));

await given(async () => {});
await takes('missing params', 0, [
  ['a', '4'],
  ['a', '1'],
  [null, '16'],
  [null, '1'],
]);
await takes('missing params, a second later', 1, [
  ['a', '2'],
  [null, '9'],
]);

await write('take.json');
