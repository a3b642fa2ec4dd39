/**
 * Adapter of the pure pipeline (estimate → step → guard) for an overload lab: `create(options)` gives a controller
 * whose `onSample(sample)` answers `{ rate, capacity, concurrency }`. It only translates; nothing is decided here.
 */
import {
  createDecideState,
  createEstimateState,
  enforcedNumbers,
  estimate,
  policySchema,
  turn,
} from '../dist/testing.js';

/** Options of the lab → a policy, with the product's defaults wherever the lab says nothing. */
export function labPolicy(o, { rateOnly = false } = {}) {
  const capMax = Math.max(2, Math.ceil((o.maxRate * o.sloMs) / 1000));
  const rate = Math.min(o.maxRate, Math.max(o.minRate, o.initialRate ?? o.maxRate));
  return policySchema.parse({
    limiter: {
      name: 'lab',
      rate,
      capacity: o.capacity ?? Math.max(1, rate / 10),
      ...(rateOnly ? { completions: 'none' } : { inFlightMax: firstCap(o, rate) }),
    },
    signals: {
      latency: {
        source: 'telemetry',
        stat: 'latency',
        of: { avg: 'mean', p50: 0.5, p95: 0.95, p99: 0.99 }[o.sloMetric ?? 'p99'] ?? 0.99,
      },
      errors: { source: 'telemetry', stat: 'errorRatio' },
    },
    objective: { latency: { below: o.sloMs } },
    control: { law: 'adaptive' },
    bounds: {
      rate: { min: o.minRate, max: o.maxRate },
      ...(rateOnly ? {} : { inFlight: { min: 2, max: capMax } }),
    },
    breaker: {
      on: 'errors',
      above: 0.85,
      per: '2s',
      openFor: '2s',
      openForMax: '5s',
      probeRate: 3,
    },
    mode: 'auto',
  });
}

/**
 * Little's law: the stated rate at a mean response time of a quarter of the objective. A rate that is only the upper
 * bound was never measured: start small and let the law climb.
 */
function firstCap(o, rate) {
  const implied = (rate * o.sloMs) / 4000;
  return Math.max(
    8,
    Math.ceil(Math.min(implied, rate < o.maxRate ? Number.POSITIVE_INFINITY : 20)),
  );
}

/** A sample of the lab → readings. The lab gives ready quantiles, so the latency comes as a value, not as bins. */
function readingsOf(s, metric, force, previousTs) {
  const answers = s.completed + s.failed;
  const mean = s.latency?.avg;
  const value = s.latency?.[metric];
  const from = s.ts - s.intervalMs;
  // The lab does not say which limit denied: attribute it to the one that was full.
  const rateFull = s.admitted * 1000 >= 0.9 * force.rate * s.intervalMs;
  const latency =
    s.ts === previousTs || !Number.isFinite(value)
      ? {
          kind: 'missing',
          reason: s.ts === previousTs ? 'stale' : answers > 0 ? 'not_finite' : 'no_traffic',
        }
      : { kind: 'value', value, atMs: s.ts, count: answers };
  return {
    atMs: s.t,
    telemetry: {
      kind: 'telemetry',
      fromMs: from,
      toMs: s.ts,
      processes: 1,
      reporting: 1,
      offered: s.offered,
      admitted: s.admitted,
      denied: rateFull ? { rate: s.rejected } : { in_flight: s.rejected },
      ok: s.completed,
      failed: s.failed,
      timedOut: 0,
      cancelled: 0,
      latency: {},
      latencySumMs: Number.isFinite(mean) ? mean * answers : 0,
      codes: {},
      upstreams: {},
      dbWait: {},
      dbWaitSumMs: 0,
      poolWaiting: Number.isFinite(s.dbWait?.waiting) ? s.dbWait.waiting : null,
      inFlight: s.inFlight,
      oldestMs: 0,
      generation: {
        id: force.generationAt(from),
        ok: s.completed,
        failed: s.failed,
        codes: {},
      },
    },
    signals: { latency },
  };
}

export default (options) => createController(options);

export function createController(o, variant = {}) {
  const policy = labPolicy(o, variant);
  const metric = o.sloMetric ?? 'p99';
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  let lastT = null;
  let lastTs = null;
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  const force = {
    state: 'closed',
    rate,
    capacity,
    inFlightMax,
    revision: 1,
    generation: 0,
    changedAt: 0,
    stateAt: 0,
    openUntil: 0,
    trips: [],
    generationAt(ms) {
      return this.trips.filter((at) => at <= ms).length;
    },
  };

  const enforce = (now) => ({
    rate: now.rate,
    capacity: now.capacity,
    ...(now.inFlightMax > 0 ? { concurrency: now.inFlightMax } : {}),
  });
  return {
    initial: () => enforce(enforcedNumbers(policy, force)),
    onSample(s) {
      const dtMs = lastT === null ? (o.intervalMs ?? 1000) : s.t - lastT;
      lastT = s.t;
      const readings = readingsOf(s, metric, force, lastTs);
      lastTs = s.ts;
      const next = estimate(policy, estimates, readings, dtMs);
      estimates = next.state;
      if (force.state === 'open' && s.t >= force.openUntil) {
        force.state = 'half-open';
        force.stateAt = force.openUntil;
      }
      const target = { rate: force.rate, capacity: force.capacity, inFlightMax: force.inFlightMax };
      const sample = {
        nowMs: s.t,
        dtMs,
        ...next.estimates,
        inForce: {
          epoch: 1,
          revision: force.revision,
          generation: force.generation,
          mode: 'auto',
          state: force.state,
          gliding: false,
          ...enforcedNumbers(policy, { state: force.state, ...target }),
          sinceChangeMs: s.t - force.changedAt,
          inStateMs: s.t - force.stateAt,
          held: 'none',
          holdBreaker: false,
          target,
        },
      };
      const { state: after, decision } = turn(policy, state, sample);
      state = after;
      if (decision.change) {
        force.revision++;
        force.changedAt = s.t;
        if (decision.state !== force.state) force.stateAt = s.t;
        if (decision.state === 'open') {
          force.generation++;
          force.trips.push(s.t);
          force.openUntil = s.t + (decision.openForMs ?? policy.breaker.openFor);
        }
        force.state = decision.state;
        force.rate = decision.rate;
        force.capacity = decision.capacity;
        force.inFlightMax = decision.inFlightMax;
        globalThis.flyballLab?.({ t: s.t, decision, sample, scenario: o.scenario });
      }
      return enforce(enforcedNumbers(policy, force));
    },
  };
}
