/** The checker of fault schedules against forged runs: each invariant has a log that breaks it, and one that does not. */
import { expect, test } from 'vitest';
import { type EntryBody, type StoredEntry, sealEntry } from '../../src/actuate/entry.js';
import { createDecideState } from '../../src/decide/state.js';
import type { Sample } from '../../src/decide/types.js';
import { LAW_VERSIONS } from '../../src/decide/types.js';
import { turn } from '../../src/guard/turn.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { policySchema } from '../../src/policy/schema.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { Params } from '../../src/redis/params.js';
import { MOVED, movedPolicy, OWN } from '../support/fault-policies.js';
import type { Heard, LimiterRecord, RunRecord, ServiceLine } from '../support/fault-record.js';
import { check, type Invariant } from './checker.js';

const policy = policySchema.parse(
  movedPolicy({
    ...{ law: 'aimd', second: 'shadow', draw: 'each', onRedisError: 'local' },
    ...{ page: 'http://127.0.0.1:1/metrics', pace: 1 },
  }),
);
const HASH = policyHash(policy);
const T0 = 1_800_000_000_000;
const VALUES = { mode: 'auto', state: 'closed', rate: 60, capacity: 30, inFlightMax: 20 } as const;

type Change = Partial<Omit<EntryBody, 'before' | 'after'>> & {
  atMs?: number;
  before?: object | null;
  after?: object;
};

/** A chain of entries: each but the first follows the one before it, unless told otherwise. */
function chain(changes: readonly Change[]): StoredEntry[] {
  let prev = GENESIS_HASH;
  let last: object | null = null;
  return changes.map((change, i) => {
    const { atMs = 100 * i, before = last, after = {}, ...rest } = change;
    const body = {
      ...{ v: 1, kind: 'change', limiter: MOVED, epoch: 1, revision: i + 1, atMs: T0 + atMs },
      ...{ actor: { kind: 'autopilot', name: 'a:1:x' }, reason: 'policy_adopted', sentence: '-' },
      ...{ before, after: { ...VALUES, ...after }, policyHash: HASH, ...rest },
    } as EntryBody;
    last = body.after;
    const sealed = sealEntry(prev, body);
    prev = sealed.hash;
    const { kind, epoch, revision } = body;
    const { hash, prev: link, body: text } = sealed;
    return { id: `${T0 + atMs}-0`, kind, epoch, revision, hash, prev: link, text, body };
  });
}

const PARAMS = {
  ...{ mode: 'auto', state: 'closed', safeRate: 30, safeInFlight: 8, openUntil: 0 },
  ...{ pinnedUntil: 0, frozenUntil: 0 },
} as Params;
const NOW = { state: 'closed', rate: 60, inFlightMax: 20 } as never;

function limiterOf(entries: StoredEntry[], more: Partial<LimiterRecord> = {}): LimiterRecord {
  const last = entries.findLast(({ kind }) => kind === 'change');
  return {
    name: MOVED,
    segments: [{ entries, unreadable: [] }],
    leases: [{ atMs: T0 - 100, owner: 'a:1:x', token: 7 }],
    looks: [],
    heard: [],
    policies: new Map([[limiterKeys({ name: MOVED }).policyVersion(HASH), policyJson(policy)]]),
    allowedPolicies: new Set([HASH]),
    end: {
      params: { ...PARAMS, epoch: last?.epoch ?? 0, revision: last?.revision ?? 0 },
      effective: NOW,
    },
    lines: [],
    ...more,
  };
}

function recordOf(limiter: LimiterRecord, more: Partial<RunRecord> = {}): RunRecord {
  return {
    ...{ limiters: [limiter], faults: [], deadlineMs: 100, onRedisError: 'local', own: OWN },
    autopilotLost: null,
    ...more,
  };
}

/** 100 ms of one service, from `atMs` on. */
function line(atMs: number, counts: Record<string, number>, more: object = {}): ServiceLine {
  return {
    ...{ service: 's', pid: 1, limiter: MOVED, fromMs: T0 + atMs, atMs: T0 + atMs + 100, maxMs: 2 },
    ...{ lagMs: 0, inFlight: 0, processes: 2, counts, ...more },
  };
}

/** At `atMs` Redis gave so many tokens, and it was heard at once. */
function given(atMs: number, tokens: number, more: Partial<Heard> = {}): Heard {
  const bucket = limiterKeys({ name: MOVED }).bucket;
  const at = { atUs: (T0 + atMs) * 1000, heardMs: T0 + atMs };
  return { pid: 1, bucket, tokens, rate: 60, drawn: false, ...at, ...more };
}

const ADMITTED = '1|1|ok|redis|1|1|closed';

async function verdict(record: RunRecord, name: Invariant) {
  const { checks } = await check(record);
  return checks[name];
}

async function breaks(record: RunRecord, name: Invariant, what: RegExp) {
  const { violations } = await verdict(record, name);
  expect(violations.join('\n')).toMatch(what);
}

async function holds(record: RunRecord, name: Invariant) {
  const { checked, violations } = await verdict(record, name);
  expect(violations).toEqual([]);
  expect(checked).toBeGreaterThan(0);
}

const OUTCOMES = {
  ...{ generation: 0, ok: 60, failed: 0, matching: 0, windowMs: 2000, fresh: true },
  tick: { ok: 60, matching: 0 },
};

/** What the loop saw: all well, and the rate binds. */
function sample(more: object = {}, traffic: object = {}): Sample {
  const seen = (value: number) => ({ value, fresh: true, ageMs: 100, count: 50 });
  return {
    ...{ nowMs: T0, dtMs: 1000 },
    signals: { p95: seen(20), errors: seen(0), inARow: seen(0), queue: seen(12) },
    traffic: {
      ...{ fresh: true, ageMs: 100, intervalMs: 1000, processes: 2, reporting: 2 },
      ...{ offeredRate: 90, admittedRate: 60, answerRate: 60, okRate: 60, answers: 60 },
      ...{ deniedByRate: 30, deniedByCap: 0, errorRatio: 0, meanMs: 15, inFlight: 1 },
      ...{ inFlightNow: 1, oldestMs: 10, ...traffic },
    },
    outcomes: OUTCOMES,
    inForce: {
      ...{ epoch: 1, revision: 1, generation: 0, gliding: false, sinceChangeMs: 9000 },
      ...{ inStateMs: 9000, held: 'none', holdBreaker: false, ...VALUES },
      target: { rate: 60, capacity: 30, inFlightMax: 20 },
    },
    ...more,
  } as unknown as Sample;
}

/** The decision that the product itself takes from this, as its entry. */
function decided(seen: Sample): Change {
  const stateBefore = createDecideState(policy);
  const { decision } = turn(policy, stateBefore, seen);
  const { state, rate, capacity, inFlightMax, reason } = decision;
  const law = `${policy.control.law}@${LAW_VERSIONS[policy.control.law]}`;
  return { after: { state, rate, capacity, inFlightMax }, reason, law, sample: seen, stateBefore };
}

const raise = (seen: Sample, to = 80): Change => ({
  ...decided(sample()),
  ...{ reason: 'law_raise', sample: seen, after: { rate: to } },
});

test('I1: what lies outside the bounds of its state, or is no number', async () => {
  await holds(recordOf(limiterOf(chain([{}, { after: { rate: 120 } }]))), 'I1');
  await breaks(
    recordOf(limiterOf(chain([{}, { after: { rate: 121 } }]))),
    'I1',
    /rate 121 outside/,
  );
  await breaks(recordOf(limiterOf(chain([{}, { after: { rate: 9 } }]))), 'I1', /rate 9 outside 10/);
  await breaks(recordOf(limiterOf(chain([{}, { after: { inFlightMax: 41 } }]))), 'I1', /cap 41/);
  await breaks(recordOf(limiterOf(chain([{ after: { rate: -1 } }]))), 'I1', /rate -1/);
  const person = { kind: 'person', name: 'kim' } as const;
  const pinned = chain([{}, { actor: person, reason: 'pin', after: { rate: 3 } }]);
  await holds(recordOf(limiterOf(pinned)), 'I1');
});

test('I2: a changed body, a gap, a second entry of a revision, a revision without its entry', async () => {
  const entries = chain([{}, {}, {}]);
  await holds(recordOf(limiterOf(entries)), 'I2');
  const [first, second, third] = entries as [StoredEntry, StoredEntry, StoredEntry];
  const edited = { ...second, text: second.text.replace('60', '61') };
  await breaks(recordOf(limiterOf([first, edited, third])), 'I2', /1\/2 .*hash differs/);
  await breaks(recordOf(limiterOf([first, third])), 'I2', /1\/3 .*link does not match/);
  await breaks(recordOf(limiterOf(chain([{}, { revision: 3 }]))), 'I2', /1\/3 .* follows 1\/1/);
  await breaks(recordOf(limiterOf(chain([{}, { revision: 1 }]))), 'I2', /second entry/);
  const limiter = limiterOf(entries);
  limiter.end!.params.revision = 4;
  await breaks(recordOf(limiter), 'I2', /in force is 1\/4/);
  const other = line(100, { '1|1|ok|redis|0|2|closed': 3 });
  const lines = [line(0, { [ADMITTED]: 1 }), other];
  await breaks(recordOf(limiterOf(entries, { lines })), 'I2', /3 by revision 0\/2 .* no entry/);
});

test('I3: a daemon that writes while another holds the lease', async () => {
  const look = (atMs: number, owner: string, token: number) => ({ atMs: T0 + atMs, owner, token });
  const entries = chain([{ atMs: 100, reason: 'law_cut' }]);
  const by = (leases: LimiterRecord['leases']) => recordOf(limiterOf(entries, { leases }));
  await holds(by([look(50, 'a:1:x', 7), look(150, 'a:1:x', 7)]), 'I3');
  // Between the two looks it may have held it.
  await holds(by([look(50, 'b:2:y', 7), look(150, 'b:2:y', 9)]), 'I3');
  await breaks(by([look(50, 'b:2:y', 7), look(150, 'b:2:y', 7)]), 'I3', /a:1:x while b:2:y held/);
});

test('I4: a raise on what is stale or missing, a trip on nothing fresh', async () => {
  await holds(recordOf(limiterOf(chain([{}, raise(sample())]))), 'I4');
  const stale = raise(sample({}, { fresh: false }));
  await breaks(recordOf(limiterOf(chain([{}, stale]))), 'I4', /traffic that is not fresh/);
  const lost = sample();
  lost.signals.queue = {
    value: null,
    fresh: false,
    ageMs: 9000,
    count: 0,
    reason: 'stale',
  } as never;
  await breaks(recordOf(limiterOf(chain([{}, raise(lost)]))), 'I4', /queue \(stale\) is bad/);
  const nan = sample();
  nan.signals.queue = { value: Number.NaN, fresh: true, ageMs: 100, count: 1 };
  await breaks(recordOf(limiterOf(chain([{}, raise(nan)]))), 'I4', /queue is bad/);
  const old = sample({ outcomes: { ...OUTCOMES, fresh: false } });
  for (const signal of Object.values(old.signals)) signal.fresh = false;
  const trip = { ...raise(old), reason: 'breaker_trip', after: { state: 'open' } };
  await breaks(recordOf(limiterOf(chain([{}, trip]))), 'I4', /no level's signal is fresh/);
});

test('I5: more than capacity + ∫ rate, to the token, by Redis and by one process alone; losses and their limit', async () => {
  const entries = chain([{}]);
  const of = (heard: Heard[], more: Partial<RunRecord> = {}) =>
    recordOf(limiterOf(entries, { heard }), more);
  const gave = (...rows: [number, number][]) => rows.map(([atMs, n]) => given(atMs, n));
  // 6 tokens in 100 ms at 60/s, and the one that rounding may be.
  await holds(of(gave([100, 30], [200, 6])), 'I5');
  await holds(of(gave([100, 30], [200, 7])), 'I5');
  await breaks(of(gave([100, 30], [200, 8])), 'I5', /38 given .* at most 36\.\d .* 0 losses/);
  // It is never fuller than full: what was not used before is gone.
  await breaks(of(gave([100, 10], [900, 30], [950, 6])), 'I5', /36 given .* at most 33/);
  // What came back is there again, before the same call gives anew; unheard, it may have come back.
  const drawn = (atMs: number, tokens: number, back = 0) =>
    given(atMs, tokens, { drawn: true, back });
  await holds(of([drawn(100, 30), drawn(160, 12, 10)]), 'I5');
  await breaks(of([drawn(100, 30), drawn(160, 12)]), 'I5', /42 given/);
  const { pid, bucket } = given(0, 0);
  const unheard = { pid, bucket, call: 7, maybeBack: 10, heardMs: T0 + 120 };
  await holds(of([drawn(100, 30), unheard, drawn(160, 12)]), 'I5');
  const refused = { pid, bucket, call: 7, heardMs: T0 + 130 };
  await breaks(of([drawn(100, 30), unheard, refused, drawn(160, 12)]), 'I5', /42 given/);
  // After a loss the bucket may be full once more, not twice, and not before it.
  const loss = { name: 'all flushed', fromMs: T0 + 1150, toMs: T0 + 1160, loses: true };
  await holds(of(gave([1100, 30], [1200, 30]), { faults: [loss] }), 'I5');
  const thrice = gave([1100, 30], [1200, 30], [1250, 30]);
  await breaks(of(thrice, { faults: [loss] }), 'I5', /90 given .* 1 losses/);
  await breaks(of(gave([100, 30], [200, 30]), { faults: [loss] }), 'I5', /60 given .* 0 losses/);
  // A rate that came into force before its entry got its id.
  const raised = chain([{}, { atMs: 1000, after: { rate: 120 } }]);
  const early = { epoch: 1, revision: 2, changedAtUs: (T0 + 900) * 1000, gliding: false };
  const heard = gave([900, 30], [1000, 12]);
  await breaks(recordOf(limiterOf(raised, { heard })), 'I5', /42 given/);
  const looks = [{ atMs: T0 + 1010, ...early }];
  await holds(recordOf(limiterOf(raised, { heard, looks })), 'I5');
  // One of two holds 60 % of the capacity by itself.
  const alone = (n: number) =>
    recordOf(limiterOf(entries, { lines: [line(100, { '1|1|ok|local|1|1|closed': n })] }));
  await holds(alone(20), 'I5');
  await breaks(alone(30), 'I5', /s admitted 30 by itself .* one of 2/);
});

test('I5: a service that admits what Redis did not give it, or from a block that is too old', async () => {
  const of = (heard: Heard[], ...lines: ServiceLine[]) =>
    recordOf(limiterOf(chain([{}]), { heard, lines }));
  const told = line(100, { [ADMITTED]: 5 });
  await holds(of([given(120, 5)], told), 'I5');
  const more = line(200, { [ADMITTED]: 2 });
  await breaks(of([given(120, 5)], told, more), 'I5', /admitted 7 .* Redis gave it 5/);
  // Another process's tokens are not this one's.
  await breaks(of([given(120, 5, { pid: 2 })], told), 'I5', /Redis gave it 0/);
  const block = (n: number) => ({ '1|1|ok|block|1|1|closed': n });
  const drawn = [given(120, 8, { drawn: true })];
  await holds(of(drawn, line(200, block(8))), 'I5');
  await breaks(of(drawn, line(200, block(9))), 'I5', /9 from blocks .* of 8 drawn/);
  await breaks(of(drawn, line(500, block(3))), 'I5', /3 from blocks .* of 0 drawn/);
});

test('I6: what passes while open, and a burst after it', async () => {
  const trip = { reason: 'breaker_trip', after: { state: 'open' }, atMs: 1000 };
  const probing = { reason: 'breaker_recovering', after: { state: 'recovering', rate: 30 } };
  const entries = chain([{}, trip, { ...probing, atMs: 2000 }]);
  const of = (...heard: Heard[]) => recordOf(limiterOf(entries, { heard }));
  // Of the trip's own millisecond nobody knows which was first.
  await holds(of(given(1000, 3), given(2150, 6)), 'I6');
  await breaks(of(given(1200, 1)), 'I6', /1 given .* open since/);
  await breaks(of(given(2100, 30)), 'I6', /30 given .* after a trip/);
  const limiter = limiterOf(chain([{}]));
  limiter.end = {
    params: { ...PARAMS, epoch: 1, revision: 1, openUntil: -1 },
    effective: { ...(NOW as object), state: 'open' } as never,
  };
  await breaks(recordOf(limiter), 'I6', /until a person ends it/);
});

test('I6: a revision that a failover has lost does not date the one that took its number', async () => {
  const trip = { reason: 'breaker_trip', after: { state: 'open' }, atMs: 1000 };
  const probing = { reason: 'breaker_recovering', after: { state: 'recovering', rate: 30 } };
  const entries = chain([{}, trip, { ...probing, atMs: 2000 }]);
  const look = (atMs: number, changedMs: number) => ({
    ...{ atMs: T0 + atMs, epoch: 1, revision: 3, changedAtUs: (T0 + changedMs) * 1000 },
    gliding: false,
  });
  const of = (looks: LimiterRecord['looks'], ...heard: Heard[]) =>
    recordOf(limiterOf(entries, { heard, looks }));
  await holds(of([look(500, 400), look(2050, 1990)], given(450, 20)), 'I6');
  // Its own look still does: from 1700 on it has been recovering.
  await breaks(of([look(2050, 1700)], given(1750, 20)), 'I6', /20 given .* after a trip/);
});

test('I7: the law moves what a person holds, in the time of the hold and not after it', async () => {
  const person = { kind: 'person', name: 'kim' } as const;
  const pin = { actor: person, reason: 'pin', after: { rate: 20 }, detail: { until: T0 + 500 } };
  const law = (atMs: number, rate: number) => ({ atMs, reason: 'law_raise', after: { rate } });
  const of = (changes: Change[]) => recordOf(limiterOf(chain([{}, pin, ...changes])));
  await holds(of([law(200, 20), law(600, 40)]), 'I7');
  await breaks(of([law(200, 40)]), 'I7', /rate 40, cap 20 although revision 1\/2 \(pin/);
  await breaks(of([law(200, 20), law(300, 21)]), 'I7', /rate 21/);
});

test('I8: a decision past its deadline though the process ran, and one by a source that nobody chose', async () => {
  const of = (...lines: ServiceLine[]) => recordOf(limiterOf(chain([{}]), { lines }));
  await holds(of(line(100, { [ADMITTED]: 1 }, { maxMs: 120 })), 'I8');
  await holds(of(line(100, { [ADMITTED]: 1 }, { maxMs: 400, lagMs: 300 })), 'I8');
  // It stopped in the midst of a take, and only then counted for how long.
  const stopped = line(100, { [ADMITTED]: 1 }, { maxMs: 400 });
  await holds(of(stopped, line(200, {}, { lagMs: 300 })), 'I8');
  await breaks(of(stopped, line(300, {}, { lagMs: 300 })), 'I8', /took 400 ms/);
  await breaks(of(line(100, { [ADMITTED]: 1 }, { maxMs: 400 })), 'I8', /took 400 ms .* most 200/);
  await breaks(of(line(100, { '1|1|ok|open|1|1|closed': 1 })), 'I8', /decided by open/);
  await breaks(of(line(100, { '1|1|ok|closed|1|1|closed': 1 })), 'I8', /decided by closed/);
});

test('I9: a policy in force that is none of those that are whole', async () => {
  await holds(recordOf(limiterOf(chain([{}]))), 'I9');
  await breaks(recordOf(limiterOf(chain([{ policyHash: 'f'.repeat(64) }]))), 'I9', /ffffffffffff/);
});

test('I10: a raise that nobody asked for', async () => {
  await holds(recordOf(limiterOf(chain([{}, raise(sample())]))), 'I10');
  const idle = sample({}, { admittedRate: 3, deniedByRate: 0, inFlight: 0.1 });
  await breaks(recordOf(limiterOf(chain([{}, raise(idle)]))), 'I10', /although 3\/s were admitted/);
});

test('I11: other than the safe values without daemons, or verbs that do nothing', async () => {
  const limiter = limiterOf(chain([{}]));
  const lost = (rate: number, inFlightMax: number, undone = 'done') =>
    recordOf(limiter, {
      autopilotLost: {
        ...{ params: PARAMS, undone },
        effective: { ...(NOW as object), rate, inFlightMax } as never,
      },
    });
  await holds(lost(30, 8), 'I11');
  await breaks(lost(45, 8), 'I11', /45\/s is in force .* not the safe 30/);
  await breaks(lost(30, 20), 'I11', /cap is 20, not the safe 8/);
  await breaks(lost(30, 8, 'declined'), 'I11', /pin ended declined/);
});

test('I12: a denial in shadow, and a law that moves what it should only recommend', async () => {
  const shadow = limiterOf(chain([{}]), { lines: [line(100, { '1|0|rate|redis|1|1|closed': 9 })] });
  shadow.end!.params.mode = 'shadow';
  await holds(recordOf(shadow), 'I12');
  shadow.lines = [line(100, { '0|0|rate|redis|1|1|closed': 9 })];
  await breaks(recordOf(shadow), 'I12', /denied 9 by rate/);
  const mode = { mode: 'recommend' };
  const moved = chain([{ after: mode }, { ...raise(sample()), after: { ...mode, rate: 80 } }]);
  await breaks(recordOf(limiterOf(moved)), 'I12', /law changed a limiter in mode recommend/);
});

test('I13: an entry whose numbers the law does not give again', async () => {
  const good = decided(sample({}, { okRate: 60 }));
  await holds(recordOf(limiterOf(chain([{}, good]))), 'I13');
  const forged = { ...good, after: { ...good.after, rate: 77 } };
  await breaks(recordOf(limiterOf(chain([{}, forged]))), 'I13', /differs: .*rate was 77/);
});
