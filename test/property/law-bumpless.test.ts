/** After a change of law, gains, policy, mode or what is in force, and after a hold: each law goes on from what is in force. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createDecideState,
  type DecideState,
  type Decision,
  type Policy,
  reviveDecideState,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf } from '../sim/fixtures.js';
import { LAWS, type Numbers, plain, sampleFor, type Tick, tick } from './law-rig.js';

/** The automatic rollback remembers on purpose, and has tests of its own. */
const alone = (policy: Policy): Policy => ({
  ...policy,
  guards: { ...policy.guards, autoRollback: false },
});
const laws = LAWS.map(([name, policy]) => [name, alone(policy)] as const);

/** The same law with other numbers of its own. */
const regained: Record<string, Policy['control']> = {
  step: { ...laws[2]![1].control, slowFor: 1500, healthyFor: 2500 } as Policy['control'],
  aimd: policyOf({ ...plain, control: { law: 'aimd', add: 7, down: 0.5 } }).control,
  pi: policyOf({ ...plain, control: { law: 'pi', kp: 0.9, ki: 0.2 } }).control,
};

/** What may happen between two decisions. `held`: a person held the limiter until now. */
const EVENTS = ['law', 'gains', 'objective', 'hold', 'mode', 'moved'] as const;
type Event = (typeof EVENTS)[number];

interface Story {
  before: Tick[];
  event: Event;
  /** In force from then on, as shares of the range; of the law before, and of the setpoint. */
  rate: number;
  cap: number;
  other: number;
  setpoint: number;
  first: Tick;
}

/** Clear evidence, one way or the other, under limits that bind. */
const pressed = (one: Tick): Tick => {
  const z = one.z > 0 ? 0.9 : -0.9;
  return { ...one, z, load: 2, under: 0.9, deniedByCap: true, ageMs: 300, fresh: true };
};

const story: fc.Arbitrary<Story> = fc.record({
  before: fc
    .tuple(
      fc.double({ min: -1, max: 1, noNaN: true }),
      fc.array(tick, { minLength: 5, maxLength: 40 }),
    )
    .map(([level, ticks]) => ticks.map((one) => ({ ...one, z: one.z + level, moved: 1 }))),
  event: fc.constantFrom(...EVENTS),
  rate: fc.double({ min: 0, max: 1, noNaN: true }),
  cap: fc.double({ min: 0, max: 1, noNaN: true }),
  other: fc.nat(LAWS.length - 1),
  setpoint: fc.double({ min: 100, max: 1000, noNaN: true }),
  first: fc.oneof(tick, tick.map(pressed)),
});

const withSetpoint = (policy: Policy, below: number): Policy => ({
  ...policy,
  objective: Object.fromEntries(
    Object.entries(policy.objective).map(([name, of]) => [name, { ...of, below }]),
  ),
});

/** The first decision after the event, and what it was taken from; `isSame`: nothing has happened at all. */
function after(policy: Policy, told: Story) {
  const { event, before, first } = told;
  const was =
    event === 'law'
      ? laws[told.other]![1]
      : event === 'gains'
        ? { ...policy, control: regained[policy.control.law] ?? policy.control }
        : event === 'objective'
          ? withSetpoint(policy, told.setpoint)
          : policy;
  const { limiter } = policy;
  const capped = limiter.inFlightMax !== undefined;
  const now: Numbers = {
    rate: Number((20 + told.rate * 380).toPrecision(3)),
    capacity: limiter.capacity,
    inFlightMax: capped ? Math.round(2 + told.cap * 62) : 0,
  };
  let state: DecideState = createDecideState(was);
  let target: Numbers = event === 'hold' ? now : numbersOf(was);
  for (const one of before) {
    const sample = sampleFor(was, one, target);
    if (event === 'hold') sample.inForce.held = 'pinned';
    if (event === 'mode') sample.inForce.mode = 'recommend';
    const turned = turn(was, state, sample);
    state = turned.state;
    if (event !== 'hold' && turned.decision.change) target = turned.decision;
  }
  const sample = sampleFor(policy, first, now);
  if (event === 'gains' || event === 'objective' || event === 'law') sample.adopted = true;
  const stands = now.rate === target.rate && now.inFlightMax === target.inFlightMax;
  const isSame = event === 'moved' && stands;
  return { sample, decision: turn(policy, state, sample).decision, isSame };
}

function numbersOf({ limiter }: Policy): Numbers {
  const { rate, capacity, inFlightMax = 0 } = limiter;
  return { rate, capacity, inFlightMax };
}

/** As far as the law goes from what is in force, by its own formula and what it says that it saw. */
interface Reach {
  rate: [least: number, most: number];
  cap: [least: number, most: number];
}

function reachOf(policy: Policy, { traffic, inForce }: Sample, { terms }: Decision): Reach {
  const { rate, inFlightMax: cap } = inForce.target;
  const law = policy.control;
  const term = (name: string) => terms[name] ?? 0;
  if (law.law === 'step') return { rate: [rate, rate], cap: [cap, cap] };
  if (law.law === 'aimd') {
    const [up, upCap] = [law.add ?? 2, law.addInFlight ?? 0.48];
    return { rate: [law.down * rate, rate + up], cap: [law.down * cap, cap + upCap] };
  }
  if (law.law === 'pi') {
    const of = Math.exp(term('change'));
    return {
      rate: [rate * Math.min(1, of), rate * Math.max(1, of)],
      cap: [cap * Math.min(1, of), cap * Math.max(1, of)],
    };
  }
  if (cap === 0) {
    const least = Math.min(0.855 * rate, 0.4 * term('measured'));
    const most = (1.161 + 0.5 * term('strides')) * rate;
    return { rate: [Math.max(20, least), most], cap: [0, 0] };
  }
  const { observed, over, verified, loopRaise, capBinds } = terms as Record<string, number>;
  const underWay = Math.max(observed!, traffic.inFlightNow ?? 0);
  const grown = cap * Math.exp(0.18 * (loopRaise ?? 1) * Math.max(0, -over!));
  return {
    rate: [Math.min(rate, 2 * verified!), Math.max(rate, 2 * verified!)],
    cap: [0.6 * Math.min(cap, 1.05 * underWay), capBinds ? grown : 2 * observed!],
  };
}

const calm: Tick = {
  ...{ z: -0.2, worse: 0, load: 0.5, answered: 1, under: 0.4, deniedByCap: false },
  ...{ meanMs: 100, ageMs: 300, dtMs: 1000, fresh: true, moved: 1 },
};

/** Whatever the seed: overload to which each law that moves within a turn answers with a cut, and no evidence at all. */
const MOVES_AND_STANDS: Story[] = [pressed({ ...calm, z: 0.9 }), { ...calm, fresh: false }].map(
  (first) => ({
    ...{ before: Array<Tick>(10).fill(calm), event: 'mode', rate: 0.5, cap: 0.5 },
    ...{ other: 0, setpoint: 250, first },
  }),
);

describe.each(laws)('%s', (_name, policy) => {
  test('bumpless: the first decision after it is a step from what is in force', () => {
    let [moved, stood] = [0, 0];
    const property = fc.property(story, (told) => {
      const { sample, decision, isSame } = after(policy, told);
      fc.pre(!isSame);
      const { rate, inFlightMax } = sample.inForce.target;
      const said = `${told.event}: ${JSON.stringify({ target: sample.inForce.target, decision })}`;
      if (!told.first.fresh) expect(decision.change, said).toBe(false);
      const reach = reachOf(policy, sample, decision);
      // A rate is stored with three digits, a cap as a whole number.
      expect(decision.rate, said).toBeGreaterThanOrEqual(
        Math.min(rate, Math.max(20, 0.994 * reach.rate[0])),
      );
      expect(decision.rate, said).toBeLessThanOrEqual(Math.max(rate, 1.006 * reach.rate[1]));
      expect(decision.inFlightMax, said).toBeGreaterThanOrEqual(
        Math.min(inFlightMax, Math.floor(reach.cap[0])),
      );
      expect(decision.inFlightMax, said).toBeLessThanOrEqual(
        Math.max(inFlightMax, Math.ceil(reach.cap[1])),
      );
      if (policy.control.law === 'pi' && decision.terms.last !== undefined && sample.adopted) {
        // The error before was another setpoint's: no part in proportion.
        expect(decision.terms.last, said).toBe(decision.terms.error);
      }
      if (decision.change) moved += 1;
      else stood += 1;
    });
    fc.assert(property, { numRuns: 100, examples: MOVES_AND_STANDS.map((each) => [each]) });
    if (policy.control.law !== 'step') expect(moved).toBeGreaterThan(0);
    expect(stood).toBeGreaterThan(0);
  });
});

test("another law begins anew; breaker, guards and what proved good are no law's", () => {
  const from = policyOf({ control: { law: 'aimd' } });
  const to = policyOf({ control: { law: 'pi' } });
  const { memory } = turn(
    from,
    createDecideState(from),
    sampleFor(from, calm, numbersOf(from)),
  ).state;
  const breaker = { ...memory.breaker, level: 3, resume: { rate: 90, inFlightMax: 20 } };
  const guard = { ...memory.guard, sinceRaiseMs: 700 };
  const state = { law: 'aimd', memory: { ...memory, breaker, guard } };
  const revived = reviveDecideState(to, JSON.parse(JSON.stringify(state)));
  for (const before of [state, revived]) {
    const sample = { ...sampleFor(to, calm, numbersOf(to)), adopted: true };
    const after = turn(to, before, sample).state;
    expect(after.law).toBe('pi');
    expect(after.memory.law).not.toHaveProperty('sinceCutMs');
    expect(after.memory.breaker.resume).toEqual(breaker.resume);
    expect(after.memory.breaker.level).toBeCloseTo(3, 1);
    expect(after.memory.guard.sinceRaiseMs).toBe(1700);
    expect(after.memory.proof?.adoptedMs).toBe(0);
  }
});
