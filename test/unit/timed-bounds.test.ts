/** Timed bounds without a server: what is laid over what, what a person may ask for, what the law does with it. */
import { expect, test } from 'vitest';
import { clearBounds, setBounds } from '../../src/actuate/verbs/bounds.js';
import type { WantedBounds } from '../../src/actuate/verbs/bounds-wanted.js';
import type { Facts, Planner, VerbPlan } from '../../src/actuate/verbs/plan.js';
import { withoutLapsed } from '../../src/actuate/windowed-params.js';
import { createDecideState } from '../../src/decide/state.js';
import type { Sample } from '../../src/decide/types.js';
import { turn } from '../../src/guard/turn.js';
import { policyHash } from '../../src/policy/hash.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import { bounded, inWindows } from '../../src/policy/person-bounds.js';
import type { PolicyInput } from '../../src/policy/schema.js';
import type { ParamChange } from '../../src/redis/params.js';
import { parseWindows, windowsText } from '../../src/redis/windows.js';
import { NOW_MS, params } from '../support/cli-params.js';

const HOUR = 3_600_000;
const input = {
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 24 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
  control: { law: 'step' },
  profiles: { sale: { times: 3 } },
} satisfies PolicyInput;
const policy = resolvePolicy(input);

function facts(change: ParamChange = {}, of: Facts['policy'] = policy): Facts {
  const policyHashNow = policyHash(policy);
  return {
    limiter: 'checkout',
    params: params({ policyHash: policyHashNow, ...change }),
    nowMs: NOW_MS,
    policy: of,
    actor: 'ada',
  };
}

function plan(planner: Planner, given: Facts): VerbPlan {
  const made = planner(given);
  if (made.kind !== 'change') throw new Error(made.sentence);
  return made;
}

const said = (bounds: object, untilMs = NOW_MS + HOUR) =>
  windowsText({ bounds: { by: 'kim', fromMs: NOW_MS, untilMs, ...bounds } });

test('a person’s bounds lie over a profile’s, and those over the policy’s; what was not said stays', () => {
  const span = { fromMs: 0, untilMs: 1 };
  expect(inWindows(policy, {})).toBe(policy);
  const both = inWindows(policy, {
    profile: { ...span, name: 'sale' },
    bounds: { ...span, by: 'kim', rate: { max: 900 }, inFlight: { min: 5 } },
  });
  expect(both.bounds).toEqual({ rate: { min: 60, max: 900 }, inFlight: { min: 5, max: 192 } });
  expect(both.limiter).toMatchObject({ rate: 300, inFlightMax: 72 });
  // The other end follows where the policy under them has become another.
  expect(bounded(policy, { rate: { max: 10 } }).bounds?.rate).toEqual({ min: 10, max: 10 });
  expect(bounded(policy, { rate: { min: 500 } }).bounds?.rate).toEqual({ min: 500, max: 500 });
  // Going safe must not raise past what a person allows; wider bounds leave it where it is.
  expect(bounded(policy, { rate: { max: 80 } }).whenLost.rate).toBe(80);
  expect(bounded(policy, { rate: { max: 900 } }).whenLost.rate).toBe(100);
});

test('what nothing of ours wrote is no bounds', () => {
  const good = said({ rate: { max: 600 } });
  expect(parseWindows(good).bounds).toMatchObject({ by: 'kim', rate: { max: 600 } });
  for (const rate of [{}, { max: 'x' }, { max: -1 }, { max: null }, { min: 1, max: Infinity }]) {
    expect(parseWindows(said({ rate }))).toEqual({});
  }
  const long = windowsText({
    bounds: { by: 'x'.repeat(999), fromMs: 0, untilMs: 1, rate: { max: 1 } },
  });
  expect(parseWindows(long).bounds?.by).toHaveLength(200);
});

test('wider: the bounds in force move, the values stay, and the entry says who and until when', () => {
  const made = plan(setBounds({ rateMax: 600, inFlightMax: 128 }, 2 * HOUR), facts());
  expect(made.reason).toBe('bounds_set');
  expect(made.change).toMatchObject({ rate: 100, inFlightMax: 24, maxRate: 600, maxInFlight: 128 });
  expect(made.change).toMatchObject({ minRate: 20, safeRate: 100 });
  expect(made.refloor).toBeUndefined();
  expect(parseWindows(made.change.windows!).bounds).toEqual({
    ...{ by: 'ada', fromMs: NOW_MS, untilMs: NOW_MS + 2 * HOUR },
    ...{ rate: { max: 600 }, inFlight: { max: 128 } },
  });
  expect(made.sentence).toBe(
    `ada set the bounds of checkout: rate 20 … 400 → 20 … 600/s, in-flight cap 2 … 64 → 2 … 128; held until ${new Date(NOW_MS + 2 * HOUR).toISOString().replace('.000Z', 'Z')}.`,
  );
  expect(made.notes.join()).toMatch(/Wider than the policy.*rate 400\/s, cap 64/);
});

test('narrower: a value outside comes within at once, a held one only down to the maximum', () => {
  const narrow = { rateMin: 120, rateMax: 150 };
  expect(plan(setBounds(narrow, HOUR), facts()).after.rate).toBe(120);
  expect(plan(setBounds(narrow, HOUR), facts({ rate: 300 })).after.rate).toBe(150);
  const pinned = { pinnedUntil: -1, heldBy: 'kim' };
  expect(plan(setBounds(narrow, HOUR), facts({ ...pinned, rate: 50 })).after.rate).toBe(50);
  expect(plan(setBounds(narrow, HOUR), facts({ ...pinned, rate: 300 })).after.rate).toBe(150);
  const open = { state: 'open', openUntil: -1, rate: 100 } as const;
  expect(plan(setBounds(narrow, HOUR), facts(open)).after.rate).toBe(100);
  const recommend = facts(
    { mode: 'recommend', rate: 100 },
    resolvePolicy({ ...input, mode: 'recommend' }),
  );
  expect(plan(setBounds({ rateMax: 80 }, HOUR), recommend).after.rate).toBe(80);
  // Buckets are kept for the lowest rate that was planned.
  expect(plan(setBounds({ rateMin: 0.5 }, HOUR), facts()).refloor).toBe('empty');
});

test('cleared: back within the policy, and nothing is raised by that', () => {
  const wide = { windows: said({ rate: { min: 5, max: 600 } }), minRate: 5, maxRate: 600 };
  const down = plan(clearBounds(), facts({ ...wide, rate: 550 }));
  expect([down.reason, down.after.rate, down.change.maxRate]).toEqual(['bounds_cleared', 400, 400]);
  expect(down.change.windows).toBe('');
  const low = plan(clearBounds(), facts({ ...wide, rate: 8 }));
  expect([low.after.rate, low.change.minRate]).toEqual([8, 20]);
  expect(clearBounds()(facts())).toMatchObject({ kind: 'nothing' });
});

test('bounds whose time is over bind nobody, though no daemon has written that yet', () => {
  const wide = { windows: said({ rate: { max: 600 } }), maxRate: 600 };
  const over = params(wide);
  expect(withoutLapsed(policy, over, NOW_MS)).toBe(over);
  expect(withoutLapsed(policy, over, NOW_MS + HOUR)).toMatchObject({ minRate: 20, maxRate: 400 });
});

test('what may not be is said with what is allowed and the mend', () => {
  const faults: [WantedBounds, RegExp][] = [
    [{}, /give rateMin, rateMax, inFlightMin, inFlightMax, or clear to end/],
    [{ rateMax: 0 }, /^rateMax is 0; 0\.000001 … 1000000/],
    [{ rateMin: Number.NaN }, /^rateMin is NaN/],
    [{ rateMin: 300, rateMax: 200 }, /Swap them/],
    [{ rateMin: 500 }, /but the most is 400: give rateMax too/],
    [{ rateMax: 10 }, /but the least is 20: give rateMin too/],
    [
      { rateMin: 0.1, rateMax: 0.5 },
      /at which the breaker probes.*flyball pin checkout --rate 0\.5/,
    ],
    [{ inFlightMax: 1.5 }, /a whole number 1 … 1000000/],
    [{ inFlightMax: 1 }, /but the least is 2: give inFlightMin too/],
  ];
  for (const [wanted, words] of faults) {
    expect(() => setBounds(wanted, HOUR)(facts())).toThrow(words);
  }
  const { inFlightMax: _, ...limiter } = input.limiter;
  const capless = resolvePolicy({ ...input, limiter, bounds: { rate: { min: 20, max: 400 } } });
  const none = facts({ inFlightMax: 0, minInFlight: 0, maxInFlight: 0 }, capless);
  expect(() => setBounds({ inFlightMax: 9 }, HOUR)(none)).toThrow(
    /^inFlightMax is 9, .* no in-flight cap/,
  );
  expect(() => setBounds({ rateMax: 600 }, HOUR)(facts({}, null))).toThrow(/cannot be read/);
});

test('I1, I13: the law climbs to a person’s maximum and no farther; the same sample decides alike', () => {
  const target = { rate: 390, capacity: 200, inFlightMax: 24 };
  const inForce = {
    ...{ epoch: 1, revision: 1, generation: 0, mode: 'auto', state: 'closed', gliding: false },
    ...target,
    ...{ sinceChangeMs: HOUR, inStateMs: HOUR, held: 'none', holdBreaker: false, target },
  };
  const traffic = {
    ...{ fresh: true, offered: 800, admitted: 390, denied: 410, inFlight: 8 },
  };
  const sample = (bounds?: Sample['bounds']) =>
    ({
      ...{ nowMs: NOW_MS, dtMs: 1000, signals: {}, traffic, inForce },
      ...(bounds && { bounds }),
    }) as unknown as Sample;
  // With nothing said of it, what lies above the policy comes down; within a person's bounds it stays.
  const high = (bounds?: Sample['bounds']) => {
    const seen = sample(bounds);
    seen.inForce = { ...seen.inForce, rate: 550, target: { ...target, rate: 550 } };
    return turn(policy, createDecideState(policy), seen).decision;
  };
  expect(high().rate).toBe(400);
  expect(high({ rate: { max: 600 } }).rate).toBe(550);
  expect(high({ rate: { max: 500 } }).rate).toBe(500);
  expect(high({ rate: { max: 500 } })).toEqual(high({ rate: { max: 500 } }));
});
