/** The breaker under anything, held against a model: it moves as its table says, never bursts, and always comes back. */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reset, trip } from '../../src/actuate/verbs/breaker.js';
import { pin, release } from '../../src/actuate/verbs/pin.js';
import type { LimiterState } from '../../src/redis/params.js';
import type { Policy } from '../../src/testing.js';
import { policyOf, type SampleParts } from '../sim/fixtures.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { createRig, MOVES, type Rig } from './breaker-rig.js';

const OPEN_MS = 2_000;
const OPEN_MAX_MS = 16_000;
const SUCCESSES = 3;
const DEADLINE_S = 6;

function breaking(shed: 'all' | 'proportional'): Policy {
  return policyOf({
    limiter: { name: 'shop', rate: 100, capacity: 50 },
    signals: { errors: { source: 'telemetry', stat: 'errorRatio' } },
    objective: {},
    control: { law: 'fixed' },
    bounds: { rate: { min: 20, max: 400 } },
    breaker: {
      ...{ on: 'errors', above: '50%', openFor: OPEN_MS, openForMax: OPEN_MAX_MS, shed },
      ...{ probeRate: 2, successes: SUCCESSES, probeDeadline: `${DEADLINE_S}s` },
    },
  });
}

/** What a second can bring. `late`: of before the last trip; `hang`: admitted and not answered. */
const KINDS = ['good', 'bad', 'mixed', 'thin', 'late', 'hang', 'idle', 'blind'] as const;
type Kind = (typeof KINDS)[number];

function second(kind: Kind, rig: Rig): SampleParts {
  const { generation, rate } = rig.view;
  const answers = Math.min(100, Math.max(1, Math.floor(rate)));
  const counted = (ok: number, failed: number, of = generation): SampleParts => ({
    traffic: { okRate: ok, answers: ok + failed, admittedRate: answers, errorRatio: null },
    outcomes: {
      ...{ generation: of, ok, failed, matching: failed },
      tick: { ok, matching: failed },
    },
  });
  switch (kind) {
    case 'good':
      return counted(answers, 0);
    case 'bad':
      return counted(0, answers);
    case 'mixed':
      return counted(Math.floor(0.3 * answers), Math.ceil(0.7 * answers));
    case 'thin':
      return counted(0, 1);
    case 'late':
      return counted(0, 100, generation - 1);
    case 'hang':
      return counted(0, 0);
    case 'idle':
      return { ...counted(0, 0), traffic: { okRate: 0, answers: 0, admittedRate: 0 } };
    case 'blind':
      return { traffic: { fresh: false }, outcomes: { fresh: false } };
  }
}

/** What is known of the breaker without its code: its state, the probes it has seen, and who holds it. */
interface Model {
  state: LimiterState;
  ok: number;
  bad: number;
  hungS: number;
  heldOpen: boolean;
  pinned: boolean;
}
type Step = fc.AsyncCommand<Model, Rig>;
const enters = (model: Model, state: LimiterState) => {
  if (model.state !== state) Object.assign(model, { ok: 0, bad: 0, hungS: -1 });
  model.state = state;
};

class Tick implements Step {
  readonly kind: Kind;
  readonly policy: Policy;
  constructor(kind: Kind, policy: Policy) {
    this.kind = kind;
    this.policy = policy;
  }
  check = () => true;
  async run(model: Model, rig: Rig) {
    const before = rig.view.state;
    const parts = second(this.kind, rig);
    await rig.tick(parts);
    const { state, rate, target } = rig.view;
    // Time may have half-opened it before the daemon looked.
    const from = model.state === 'open' && state !== 'open' ? 'half-open' : model.state;
    expect(MOVES[from], `${before} on ${this.kind}`).toContain(state);
    if (from !== model.state) enters(model, from);
    this.expected(model, from, parts, state);
    enters(model, state);
    const { probeRate } = this.policy.breaker!;
    if (state === 'open') expect(rate).toBe(0);
    if (state === 'half-open') expect(rate).toBe(probeRate);
    if (state === 'recovering') expect(rate).toBeGreaterThanOrEqual(probeRate);
    expect(target.rate).toBeLessThanOrEqual(400);
  }
  /** Where the words of the second leave no choice, it goes there. */
  expected(model: Model, from: LimiterState, parts: SampleParts, state: LimiterState) {
    const { tick = { ok: 0, matching: 0 }, fresh = true } = parts.outcomes ?? {};
    const counts = fresh && this.kind !== 'late';
    if (!counts || (tick.ok === 0 && tick.matching === 0)) {
      if (from !== 'half-open') expect([from, 'closed']).toContain(state);
      else if (state !== 'half-open') expect(state).toBe('open');
      return;
    }
    if (from === 'half-open') {
      model.ok += tick.ok;
      model.bad += tick.matching;
      const failed = model.bad > 0 && model.bad >= model.ok;
      const back = model.pinned ? 'closed' : 'recovering';
      if (failed) expect(state).toBe('open');
      else if (model.ok >= SUCCESSES) expect(state).toBe(back);
    }
    const shed = this.policy.breaker!.shed === 'proportional';
    if (this.kind === 'bad' && from === 'closed' && tick.matching >= 10) {
      expect(state).toBe(shed ? (model.pinned ? 'closed' : 'recovering') : 'open');
    }
    if (this.kind === 'good' && from === 'closed') expect(state).toBe('closed');
  }
  toString = () => this.kind;
}

class Wait implements Step {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: Model, rig: Rig) {
    await rig.wait(this.ms);
    // Time alone half-opens what is open, and nothing else; glides are another test's.
    expect(model.state === 'open' ? ['open', 'half-open'] : [model.state]).toContain(
      rig.view.state,
    );
    if (model.heldOpen) expect(rig.view.state).toBe('open');
    else if (this.ms >= OPEN_MAX_MS) expect(rig.view.state).not.toBe('open');
    enters(model, rig.view.state);
  }
  toString = () => `wait ${this.ms}`;
}

class Person implements Step {
  readonly verb: 'trip' | 'trip and hold' | 'reset' | 'pin' | 'release';
  constructor(verb: Person['verb']) {
    this.verb = verb;
  }
  check = () => true;
  async run(model: Model, rig: Rig) {
    const planners = {
      trip: trip(OPEN_MS),
      'trip and hold': trip('until-ended'),
      reset: reset(),
      pin: pin({ rate: 30 }, 'until-ended'),
      release: release(),
    };
    const stopped = rig.view.state === 'open' || rig.view.state === 'half-open';
    await rig.person(planners[this.verb]);
    const { state } = rig.view;
    if (this.verb === 'trip' || this.verb === 'trip and hold') {
      expect(state).toBe('open');
      model.heldOpen = this.verb === 'trip and hold';
    } else if (this.verb === 'reset' && stopped) {
      expect(['closed', 'recovering']).toContain(state);
      model.heldOpen = false;
    }
    if (this.verb === 'pin') model.pinned = true;
    if (this.verb === 'release') model.pinned = false;
    enters(model, state);
  }
  toString = () => this.verb;
}

class TakeOver implements Step {
  readonly from: 'checkpoint' | 'nothing';
  constructor(from: TakeOver['from']) {
    this.from = from;
  }
  check = () => true;
  async run(model: Model, rig: Rig) {
    rig.takeOver(this.from);
    if (this.from === 'nothing') Object.assign(model, { ok: 0, bad: 0, hungS: -1 });
  }
  toString = () => `take over from ${this.from}`;
}

/** Good answers from here on: closed again in bounded time, whatever it was before. */
async function comesBack(rig: Rig): Promise<void> {
  await rig.person(reset());
  await rig.person(release());
  const atMost = OPEN_MAX_MS / 1000 + 2 * SUCCESSES + 20;
  for (let i = 0; i < atMost && rig.view.state !== 'closed'; i++) {
    await rig.tick(second('good', rig));
  }
  expect(rig.view.state).toBe('closed');
}

/** The same without a person: only what a person holds open stays. */
async function comesBackAlone(rig: Rig): Promise<void> {
  const atMost = OPEN_MAX_MS / 1000 + 2 * SUCCESSES + 20;
  for (let i = 0; i < atMost && rig.view.state !== 'closed'; i++) {
    await rig.tick(second('good', rig));
  }
  expect(rig.view.state).toBe('closed');
}

let server: TestRedis;
let redis: Redis;
let count = 0;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());

test.each(['all', 'proportional'] as const)(
  'I6: shed %s: it moves as its table says, never bursts and never sticks',
  async (shed) => {
    const policy = breaking(shed);
    const commands = [
      fc.constantFrom(...KINDS).map((kind) => new Tick(kind, policy)),
      fc.constantFrom<Kind>('good', 'bad', 'hang').map((kind) => new Tick(kind, policy)),
      fc.constantFrom(500, 2_000, 5_000, OPEN_MAX_MS).map((ms) => new Wait(ms)),
      fc
        .constantFrom<Person['verb']>('trip', 'trip and hold', 'reset', 'pin', 'release')
        .map((verb) => new Person(verb)),
      fc.constantFrom<TakeOver['from']>('checkpoint', 'nothing').map((from) => new TakeOver(from)),
    ];
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 40 }), async (list) => {
        const rig = await createRig(redis, `shop-${++count}`, policy);
        const model: Model = {
          ...{ state: 'closed', ok: 0, bad: 0, hungS: -1, heldOpen: false, pinned: false },
        };
        await fc.asyncModelRun(() => ({ model, real: rig }), list);
        if (model.heldOpen && rig.view.state === 'open') await comesBack(rig);
        else await comesBackAlone(rig);
      }),
      { numRuns: 40 },
    );
  },
  60_000,
);
