/** I5 where features meet: under changes of policy amid traffic each token is charged once and given back once. */
import { expect, test } from 'vitest';
import { type Limiter, type TakeDecision, takeAll } from '../../src/index.js';
import type { ParamChange } from '../../src/redis/params.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const CAPACITY = 20_000;
const OWN = 3_000;
const GROUP = 'meet';
const SUBJECTS = ['a', 'b', 'c', 'd'];
const NEVER = 1e-6;
const bench = sdkBench('meet');

/** A generator of our own: the same steps in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What is toggled, one field a step. */
const CHANGES: ParamChange[] = [
  { terms: '{"exact":true}' },
  { terms: '{"count":"failures"}' },
  { terms: '{"exact":true,"count":"successes"}' },
  { terms: '' },
  { rollout: '{"percent":50}' },
  { rollout: '{"percent":0,"subjects":["a"]}' },
  { rollout: '{"percent":30,"by":"request"}' },
  { rollout: '' },
  { mode: 'shadow' },
  { mode: 'auto' },
  { mode: 'auto' },
  { inFlightMax: 40 },
  { inFlightMax: 0 },
];

/** What is drawn when blocks are forbidden may be lost: never more is left than the book says. */
const BLOCKS: ParamChange[] = [
  { terms: '{"draw":"block"}' },
  { terms: '{"draw":"block","exact":true}' },
  { terms: '{"draw":"block","count":"failures"}' },
];

/** Takes by every way there is, ends each somehow, and keeps book of what Redis must have charged. */
function createTraffic(limiters: readonly Limiter[], random: () => number) {
  const set = takeAll([limiters[0]!]);
  /** Taken and not given back, by subject; `null` is the total. */
  const owed = new Map<string, number>([['', 0]]);
  const modes = new Map<number, string>();
  const book = (subject: string | null, tokens: number) => {
    for (const name of subject === null ? [''] : ['', subject]) {
      owed.set(name, (owed.get(name) ?? 0) + tokens);
    }
  };
  const isEnforced = ({ source, reason, wouldAllow, revision }: TakeDecision) =>
    (source === 'redis' || source === 'block') &&
    reason === 'ok' &&
    wouldAllow &&
    modes.get(revision) !== 'shadow';

  async function end(decision: TakeDecision, cost: number, api: Limiter): Promise<void> {
    if (!decision.allowed) return;
    const enforced = isEnforced(decision);
    if (enforced) book(decision.subject, cost);
    const returned = { refunded: true };
    const id = random() < 0.3 ? decision.id : null;
    // Asked for several times, before and after the end, and by another process.
    const asked = random() < 0.4 ? [decision.refund(), decision.refund()] : [];
    if (id !== null && random() < 0.5) asked.push(limiters.find((one) => one !== api)!.refund(id));
    decision.done(random() < 0.5 ? 'cancelled' : 'timed_out');
    decision.done('ok');
    if (id !== null && random() < 0.5) asked.push(api.refund(id));
    const answers = await Promise.all(asked);
    const made = answers.filter(({ refunded }) => refunded).length;
    expect(made, JSON.stringify(answers)).toBeLessThanOrEqual(1);
    if (made === 1) expect(answers).toContainEqual(returned);
    if (enforced && made === 1) book(decision.subject, -cost);
  }

  async function one(): Promise<void> {
    const subject = random() < 0.2 ? null : SUBJECTS[Math.floor(random() * SUBJECTS.length)]!;
    const cost = [1, 1, 1, 2, 0.5][Math.floor(random() * 5)]!;
    const api = limiters[random() < 0.5 ? 0 : 1]!;
    const way = random();
    try {
      if (way < 0.5) await end(await api.take(subject, { cost }), cost, api);
      else if (way < 0.7) await end(await api.wait(subject, { cost, timeoutMs: 1 }), cost, api);
      else if (way < 0.9) {
        const lead = limiters[0]!;
        const { decisions } = await set.take({ [lead.name]: { subject, cost } });
        await end(decisions[lead.name]!, cost, lead);
      } else {
        const many = await api.takeMany([{ subject, cost }, {}]);
        await Promise.all([end(many[0]!, cost, api), end(many[1]!, 1, api)]);
      }
    } catch (error) {
      expect(error).toMatchObject({ code: 'FLYBALL_E_ENFORCE_DENIED' });
    }
  }

  return { one, owed, modes };
}

test.each([
  [1, 'each', CHANGES],
  [14, 'each', CHANGES],
  [2, 'block', [...CHANGES, ...BLOCKS]],
] as const)(
  'I5: features changed under traffic charge once and mint nothing (%i, draw %s)',
  async (seed, draw, changes) => {
    const name = bench.name();
    const address = { name, group: GROUP };
    const random = seeded(seed);
    const make = () => bench.limiter({ ...address, deadlineMs: 10_000, completions: true });
    const start: ParamChange = { rate: NEVER, minRate: NEVER, safeRate: NEVER, capacity: CAPACITY };
    const own = { subjectRate: NEVER, subjectCapacity: OWN };
    const created = await setParams(bench.admin, address, { ...start, ...own });
    const limiters = [make(), make()];
    const traffic = createTraffic(limiters, random);
    traffic.modes.set(created.revision, 'auto');
    let mode = 'auto';
    for (const each of limiters) {
      await until('Redis decides', async () => (await each.peek()).source === 'redis');
    }
    for (let step = 0; step < 16; step++) {
      const change = changes[Math.floor(random() * changes.length)]!;
      mode = change.mode ?? mode;
      const { revision } = await setParams(bench.admin, address, change);
      traffic.modes.set(revision, mode);
      for (let burst = 0; burst < 5; burst++) {
        await Promise.all(Array.from({ length: 40 }, () => traffic.one()));
      }
    }
    const used = limiters.map((each) => each.stats());
    expect(used.map(({ inFlight }) => inFlight)).toEqual([0, 0]);
    expect(used.map(({ redisErrors, refundsDropped }) => redisErrors + refundsDropped)).toEqual([
      0, 0,
    ]);
    await Promise.all(limiters.map((each) => each.close()));
    const looker = make();
    await setParams(bench.admin, address, { mode: 'auto', rollout: '', inFlightMax: 0 });
    await until('Redis decides', async () => (await looker.peek()).source === 'redis');
    const agrees = (remaining: number, booked: number, what: string) => {
      const most = Math.floor(booked + 1e-3);
      if (draw === 'each') expect(remaining, what).toBe(most);
      else expect(remaining, what).toBeLessThanOrEqual(most);
    };
    for (const [subject, tokens] of traffic.owed) {
      if (subject !== '') {
        const { remaining } = await looker.peek(subject);
        agrees(remaining, OWN - tokens, subject);
      }
    }
    const { remaining } = await looker.peek();
    agrees(remaining, CAPACITY - traffic.owed.get('')!, 'total');
    await until(
      'no place is held',
      async () => (await bench.admin.zcard(`flyball:${name}{${GROUP}}:fs`)) === 0,
    );
  },
);
