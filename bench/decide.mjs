/** The bench `decide`: one step and one turn of the law, and a tick's decide + guard of 10,000 limiters. */
import { createDecideState, resolvePolicy, step, turn } from '../dist/testing.js';
import { randomFrom } from './load.mjs';
import { median, target } from './report.mjs';

const ROUNDS = 7;
const LIMITERS = 10_000;
const STEPS = 20_000;
const SIGNALS = ['p95', 'wait', 'queue', 'errors'];

const policy = resolvePolicy({
  limiter: { name: 'bench', rate: 100, capacity: 50, inFlightMax: 24 },
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    wait: { source: 'telemetry', stat: 'dbWait', of: 0.95 },
    queue: { source: 'telemetry', stat: 'poolWaiting' },
    errors: { source: 'telemetry', stat: 'errorRatio' },
  },
  objective: { p95: { below: '250ms' }, wait: { below: '80ms' }, queue: { below: 10 } },
  control: { law: 'adaptive' },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  breaker: { on: 'errors', above: '50%', openFor: '5s' },
  mode: 'auto',
});

export async function decideBench() {
  const run = { step: [], turn: [], tick: [] };
  let limiters = Array.from({ length: LIMITERS }, (_each, i) => started(i));
  for (let round = 0; round <= ROUNDS; round++) {
    const times = { step: oneLimiter(step, 'step'), turn: oneLimiter(turn, 'turn') };
    const start = performance.now();
    const turns = limiters.map(decided);
    times.tick = performance.now() - start;
    // What the services do until the next tick is not the daemon's work.
    limiters = limiters.map((limiter, i) => next(limiter, turns[i], 'turn'));
    // The first round compiles.
    if (round > 0) for (const name of Object.keys(run)) run[name].push(times[name]);
  }
  const stepUs = median(run.step);
  const tickMs = median(run.tick);
  return {
    tables: [
      {
        title: `Adaptive law, ${SIGNALS.length} signals, ${ROUNDS} rounds`,
        columns: ['', 'median', 'worst round'],
        rows: [
          ['step, µs', stepUs, Math.max(...run.step)],
          ['turn (step and guards), µs', median(run.turn), Math.max(...run.turn)],
          [`a tick of ${LIMITERS} limiters, ms`, tickMs, Math.max(...run.tick)],
        ],
      },
    ],
    targets: [
      target('step of a policy with 4 signals, µs', stepUs, '<=', 20),
      target(`decide and guard of ${LIMITERS} limiters, ms`, tickMs, '<=', 250),
    ],
  };
}

/** µs of one call, on a limiter whose load changes all the time. */
function oneLimiter(decide, what) {
  let limiter = started(1);
  const start = performance.now();
  for (let i = 0; i < STEPS; i++)
    limiter = next(limiter, decide(policy, limiter.state, limiter.sample), what);
  return ((performance.now() - start) * 1000) / STEPS;
}

const decided = ({ state, sample }) => turn(policy, state, sample);

function started(seed) {
  const random = randomFrom(seed);
  const target = { rate: 100, capacity: 50, inFlightMax: 24 };
  return { state: createDecideState(policy), random, target, sample: sampleOf(random, target, 0) };
}

/** What was decided is in force at the next tick. */
function next({ random, target, sample }, { state, decision, proposal }, what) {
  const { rate, capacity, inFlightMax } = what === 'turn' ? decision : proposal;
  const moved = what === 'step' || decision.change ? { rate, capacity, inFlightMax } : target;
  return { state, random, target: moved, sample: sampleOf(random, moved, sample.nowMs + 1000) };
}

/** A second of a busy service around its objective. */
function sampleOf(random, target, nowMs) {
  const load = 60 + 80 * random();
  const signal = (value) => ({ value, fresh: true, ageMs: 300, count: 100 });
  return {
    nowMs,
    dtMs: 1000,
    signals: {
      p95: signal(100 + 250 * random()),
      wait: signal(100 * random()),
      queue: signal(12 * random()),
      errors: signal(0.1 * random()),
    },
    traffic: {
      fresh: true,
      ageMs: 300,
      intervalMs: 1000,
      processes: 4,
      reporting: 4,
      offeredRate: load + 10,
      admittedRate: load,
      answerRate: load,
      okRate: load * 0.98,
      answers: Math.round(load),
      deniedByRate: 5,
      deniedByCap: 5,
      errorRatio: 0.02,
      meanMs: 90,
      inFlight: load * 0.09,
      inFlightNow: 9,
      oldestMs: 200,
    },
    outcomes: {
      generation: 0,
      ok: 900,
      failed: 10,
      matching: 10,
      windowMs: 10_000,
      fresh: true,
      tick: { ok: 90, matching: 1 },
    },
    inForce: {
      epoch: 1,
      revision: 1,
      generation: 0,
      mode: 'auto',
      state: 'closed',
      gliding: false,
      ...target,
      sinceChangeMs: 10_000,
      inStateMs: 60_000,
      held: 'none',
      holdBreaker: false,
      target,
    },
  };
}
