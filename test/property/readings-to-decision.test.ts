/** Any readings in any order, lies among them, at estimate → step → guard: only fresh evidence raises or trips. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LimiterState } from '../../src/redis/params.js';
import type {
  MissingReason,
  Reading,
  Readings,
  TelemetryReading,
} from '../../src/sense/readings.js';
import {
  boundsOf,
  createDecideState,
  createEstimateState,
  enforcedNumbers,
  estimate,
  type Policy,
  type PolicyInput,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, telemetryOf } from '../sim/fixtures.js';

const REASONS: MissingReason[] = [
  ...(['no_data', 'no_traffic', 'stale', 'not_finite', 'reset', 'timeout'] as const),
  ...(['unreachable', 'error', 'breaker_open', 'not_started', 'clock_skew'] as const),
];
/** What no count and no time can be. */
const LIES = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, -1e9, 1e300];
const COUNTS = ['ok', 'failed', 'offered', 'admitted', 'timedOut', 'cancelled'] as const;

/** One tick. `sound`: telemetry that may be believed (it may still be set aside as an absurd jump). */
type Services =
  | {
      kind: 'sound';
      ok: number;
      failed: number;
      ms: number;
      denied: number;
      inFlight: number;
      oldestMs: number;
    }
  | { kind: 'lie'; field: (typeof COUNTS)[number]; lie: number }
  | { kind: 'again' | 'older' | 'future' | 'nothing' }
  | { kind: 'missing'; reason: MissingReason };
type OfSource =
  | { kind: 'value'; value: number; lateMs: number }
  | { kind: 'missing'; reason: MissingReason };

interface Tick {
  services: Services;
  source: OfSource;
  routes: [number, number] | null;
  clockMs: number;
  dtMs: number;
  held: Sample['inForce']['held'];
  holdBreaker: boolean;
  gliding: boolean;
}

const reason = fc.constantFrom(...REASONS);
const sound: fc.Arbitrary<Services> = fc.record({
  kind: fc.constant('sound' as const),
  ok: fc.oneof(fc.nat(300), fc.nat(20_000)),
  failed: fc.oneof(fc.constant(0), fc.nat(300)),
  ms: fc.oneof(fc.integer({ min: 5, max: 400 }), fc.integer({ min: 1, max: 60_000 })),
  denied: fc.oneof(fc.constant(0), fc.nat(500)),
  inFlight: fc.oneof(fc.nat(60), fc.nat(100_000)),
  oldestMs: fc.nat(120_000),
});
const bad: fc.Arbitrary<Services> = fc.oneof(
  fc.record({
    kind: fc.constant('lie' as const),
    field: fc.constantFrom(...COUNTS),
    lie: fc.constantFrom(...LIES),
  }),
  fc.record({
    kind: fc.constantFrom(
      'again' as const,
      'older' as const,
      'future' as const,
      'nothing' as const,
    ),
  }),
  fc.record({ kind: fc.constant('missing' as const), reason }),
);
const source: fc.Arbitrary<OfSource> = fc.oneof(
  fc.record({
    kind: fc.constant('value' as const),
    value: fc.oneof(
      { weight: 6, arbitrary: fc.double({ min: 0, max: 20, noNaN: true }) },
      { weight: 1, arbitrary: fc.constantFrom(...LIES) },
    ),
    lateMs: fc.constantFrom(0, 0, 0, 900, 15_000, 700_000, -900_000),
  }),
  fc.record({ kind: fc.constant('missing' as const), reason }),
);
const tick: fc.Arbitrary<Tick> = fc.record({
  services: fc.oneof({ weight: 3, arbitrary: sound }, { weight: 2, arbitrary: bad }),
  source,
  routes: fc.option(fc.tuple(fc.nat(500), fc.nat(500))),
  clockMs: fc.oneof(
    { weight: 12, arbitrary: fc.constant(0) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(60_000, -60_000, 86_400_000, -86_400_000, 6_000, -6_000),
    },
  ),
  dtMs: fc.constantFrom(1000, 1000, 1000, 250, 15_000, 0),
  held: fc.constantFrom('none', 'none', 'none', 'none', 'none', 'frozen', 'pinned'),
  holdBreaker: fc.oneof(
    { weight: 5, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.boolean() },
  ),
  gliding: fc.oneof(
    { weight: 8, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.boolean() },
  ),
});

/** A service that is well and asked for more, then one that fails: whatever the seed, each law raises and trips here. */
const WELL_THEN_FAILING: Tick[] = Array.from({ length: 40 }, (_each, i) => ({
  services: {
    ...{ kind: 'sound', ok: i < 30 ? 100 : 0, failed: i < 30 ? 0 : 100, ms: 20 },
    ...{ denied: 50, inFlight: 20, oldestMs: 30 },
  },
  source: { kind: 'value', value: 0.1, lateMs: 0 },
  ...{ routes: null, clockMs: 0, dtMs: 1000, held: 'none', holdBreaker: false, gliding: false },
}));

const WITH_SOURCE: Partial<PolicyInput> = {
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    errors: { source: 'telemetry', stat: 'errorRatio' },
    dbWait: { source: 'postgres', stat: 'waiting', url: 'postgres://db' },
    busy: { source: 'postgres', stat: 'connectionsRatio', url: 'postgres://db' },
  },
  objective: { p95: { below: '250ms' }, dbWait: { below: 5 } },
  guards: { cooldown: 0, changesPerMinute: 1000, deadBand: 0 },
};
const LAWS: [string, Partial<PolicyInput>][] = [
  ['adaptive', {}],
  [
    'adaptive, rate only',
    {
      limiter: { name: 'plain', rate: 100, capacity: 50, completions: 'none' },
      bounds: { rate: { min: 20, max: 400 } },
    },
  ],
  ['step', { control: { law: 'step', slowFor: '3s', healthyFor: '10s', dbWaitsAbove: 3 } }],
  ['aimd', { control: { law: 'aimd' } }],
  ['pi', { control: { law: 'pi', kp: 2, ki: 3 } }],
  ['fixed', { control: { law: 'fixed' } }],
];
const RULES: [string, Partial<PolicyInput>][] = [
  ['hold', {}],
  ['glide', { onMissing: 'glide', whenLost: { after: '3s', over: '5s', rate: 40, inFlight: 8 } }],
  [
    'ignore, a witness, sustain',
    {
      objective: {
        p95: {
          below: '250ms',
          sustain: '2s',
          confirm: { dbWait: { above: 2 }, busy: { above: '50%' } },
        },
        dbWait: { below: 5, onMissing: 'ignore' },
        busy: { below: '80%', onMissing: 'glide' },
      },
      whenLost: { after: '2s', over: '3s', rate: 30, inFlight: 4 },
    },
  ],
];

/** The world outside: which clock it is, what was last said. */
function readingsFor(
  one: Tick,
  at: { nowMs: number; last: TelemetryReading | null },
  generation: number,
): Readings {
  const { nowMs, last } = at;
  const { services, source: of } = one;
  const signal: Reading =
    of.kind === 'missing'
      ? of
      : { kind: 'value', value: of.value, atMs: nowMs - of.lateMs, count: 1 };
  const signals = { dbWait: signal, busy: signal };
  const missing = (why: MissingReason): Readings => ({
    ...{ atMs: nowMs, telemetry: { kind: 'missing', reason: why }, signals },
  });
  if (services.kind === 'missing') return missing(services.reason);
  const told = (telemetry: TelemetryReading): Readings => ({ atMs: nowMs, telemetry, signals });
  switch (services.kind) {
    case 'sound': {
      const { ok, failed, ms, denied, inFlight, oldestMs } = services;
      const answers = Math.max(1, Math.min(400, ok + failed));
      const { latency } = telemetryOf(nowMs, { ok: answers, ms });
      const routes = one.routes && {
        routes: {
          quick: { n: one.routes[0], sumMs: one.routes[0] * ms },
          slow: { n: one.routes[1], sumMs: one.routes[1] * 9 * ms },
        },
      };
      return told({
        ...telemetryOf(nowMs, { ok, failed, ms: 1, latency, latencySumMs: (ok + failed) * ms }),
        ...{ inFlight, oldestMs, denied: { rate: denied, in_flight: denied } },
        generation: { id: generation, ok, failed, codes: {} },
        ...routes,
      });
    }
    case 'lie':
      return told({
        ...telemetryOf(nowMs, { ok: 200, ms: 20, denied: { rate: 50, in_flight: 50 } }),
        generation: { id: generation, ok: 0, failed: 900, codes: {} },
        [services.field]: services.lie,
      });
    case 'again':
      return last === null ? missing('not_started') : told(last);
    case 'older':
      if (last === null) return missing('not_started');
      return told(telemetryOf(last.toMs - 5000, { failed: 900, ms: 20 }));
    case 'future':
      return told(telemetryOf(nowMs + 900_000, { failed: 900, ms: 20 }));
    case 'nothing':
      return told({ ...telemetryOf(nowMs, { failed: 900 }), fromMs: nowMs });
  }
}

interface Seen {
  one: Tick;
  sample: Sample;
  turned: ReturnType<typeof turn>;
  /** Telemetry of this tick that may decide at all: sound, newer than any before, and of a clock that was not set. */
  sound: boolean;
}

function play(policy: Policy, ticks: readonly Tick[], check: (seen: Seen) => void) {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  const stored = { state: 'closed' as LimiterState, rate, capacity, inFlightMax };
  let generation = 0;
  let openUntilMs = 0;
  const at = { nowMs: 1_000_000_000, last: null as TelemetryReading | null };
  for (const [i, one] of ticks.entries()) {
    at.nowMs += one.dtMs + one.clockMs;
    openUntilMs += one.clockMs;
    const readings = readingsFor(one, at, generation);
    const { telemetry } = readings;
    const jumped = i > 0 && one.clockMs !== 0;
    if (jumped) at.last = null;
    const isNew = telemetry.kind === 'telemetry' && telemetry.toMs > (at.last?.toMs ?? 0);
    const isSound = one.services.kind === 'sound' && isNew && !jumped;
    if (isSound && telemetry.kind === 'telemetry') at.last = telemetry;
    const next = estimate(policy, estimates, readings, one.dtMs);
    estimates = next.state;
    if (stored.state === 'open' && at.nowMs >= openUntilMs) stored.state = 'half-open';
    const target = {
      rate: stored.rate,
      capacity: stored.capacity,
      inFlightMax: stored.inFlightMax,
    };
    const inForce = enforcedNumbers(policy, stored);
    const glides = one.gliding && stored.state === 'closed';
    const sample: Sample = {
      nowMs: at.nowMs,
      dtMs: one.dtMs,
      ...next.estimates,
      inForce: {
        ...{ epoch: 1, revision: 1, generation, mode: 'auto', gliding: glides },
        ...(glides ? { ...inForce, rate: inForce.rate * 0.9 } : inForce),
        ...{ state: stored.state, sinceChangeMs: 0, inStateMs: 0 },
        ...{ held: one.held, holdBreaker: one.holdBreaker, target },
      },
    };
    const turned = turn(policy, state, sample);
    check({ one, sample, turned, sound: isSound });
    state = turned.state;
    const { decision } = turned;
    if (!decision.change) continue;
    if (decision.state === 'open' && stored.state !== 'open') {
      generation++;
      openUntilMs = at.nowMs + decision.openForMs!;
    }
    Object.assign(stored, {
      ...{ state: decision.state, rate: decision.rate },
      ...{ capacity: decision.capacity, inFlightMax: decision.inFlightMax },
    });
  }
}

/** Throws with all that was seen; plain, since it is asked a hundred thousand times. */
function must(holds: boolean, what: string, { sample, turned }: Seen): void {
  if (!holds) throw new Error(`${what}: ${JSON.stringify({ sample, decision: turned.decision })}`);
}

function finite(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(finite);
}

function holdsInvariants(policy: Policy, seen: Seen): void {
  const { sample, turned, sound } = seen;
  const { decision, state } = turned;
  const { inForce } = sample;
  const { target } = inForce;
  const { rate, inFlight } = boundsOf(policy);
  must(finite(state) && finite(decision) && finite(sample), 'all is finite', seen);
  must(decision.rate >= 0 && decision.rate <= Math.max(rate.max, target.rate), 'I1: rate', seen);
  must(Number.isInteger(decision.inFlightMax), 'a cap is whole', seen);
  const most = Math.max(inFlight?.max ?? 0, target.inFlightMax);
  must(decision.inFlightMax >= 0 && decision.inFlightMax <= most, 'I1: cap', seen);
  if (decision.state === 'closed' && inForce.state === 'closed') {
    must(decision.rate >= Math.min(rate.min, inForce.rate, target.rate), 'I1: least rate', seen);
  }

  // Against what is enforced now, so that a way out of open counts as a raise as well.
  const after = enforcedNumbers(policy, decision);
  const up = after.rate > inForce.rate || after.inFlightMax > inForce.inFlightMax;
  const trips = decision.change && decision.state === 'open' && inForce.state !== 'open';
  if (!sound) {
    must(!sample.traffic.fresh && !sample.outcomes.fresh, 'I4: not fresh', seen);
    must(!(decision.change && up), 'I4: no raise', seen);
    must(!trips, 'I4: no trip', seen);
  }
  must(!trips || sample.outcomes.fresh, 'I4: a trip follows outcomes', seen);
  // An objective whose signal is lost raises nothing but what lies below the bounds, unless its policy ignores it.
  const blocked = Object.entries(policy.objective).some(
    ([name, { onMissing = policy.onMissing }]) => {
      const { value, reason: why } = sample.signals[name]!;
      const lost = why !== 'thin' && why !== 'no_traffic' && (value === null || why !== undefined);
      return lost && onMissing !== 'ignore';
    },
  );
  const above =
    (after.rate > inForce.rate && after.rate > rate.min) ||
    (after.inFlightMax > inForce.inFlightMax && after.inFlightMax > (inFlight?.min ?? 0));
  if (blocked && decision.cause === 'law') {
    must(!(decision.change && above), 'I4: no raise while a signal is lost', seen);
  }
}

describe.each(LAWS)('law %s', (_law, law) => {
  test.each(RULES)(
    'I1, I4: %s: finite, within bounds, and nothing but fresh evidence raises or trips',
    (_rule, rule) => {
      const policy = policyOf({ ...WITH_SOURCE, ...law, ...rule });
      const seen = { raises: 0, trips: 0 };
      fc.assert(
        fc.property(fc.array(tick, { minLength: 5, maxLength: 50 }), (ticks) => {
          play(policy, ticks, (each) => {
            holdsInvariants(policy, each);
            const { decision } = each.turned;
            if (decision.change && decision.rate > each.sample.inForce.rate) seen.raises++;
            if (decision.state === 'open') seen.trips++;
          });
        }),
        { numRuns: 30, examples: [[WELL_THEN_FAILING]] },
      );
      // The readings were such that something happened.
      expect(seen.trips).toBeGreaterThan(0);
      if (policy.control.law !== 'fixed') expect(seen.raises).toBeGreaterThan(0);
    },
  );
});
