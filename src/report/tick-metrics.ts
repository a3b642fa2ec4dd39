/** One tick's sample and decision → metric values, shown when somebody asks. Stage: report. */
import type { Decision, InForceView, Sample } from '../decide/types.js';
import { demandRatio } from './demand.js';
import type { Metrics } from './metrics.js';

const STATES = ['closed', 'open', 'half-open', 'recovering'] as const;
const HOLDS = ['frozen', 'pinned'] as const;

/** What is in force; also called by a daemon that only watches. */
export function reportInForce(metrics: Metrics, limiter: string, view: InForceView): void {
  metrics.lastSeen.keep('inForce', limiter, () => showInForce(metrics, limiter, view));
}

function showInForce(metrics: Metrics, limiter: string, view: InForceView): void {
  metrics.rate.set({ limiter }, view.rate);
  metrics.capacity.set({ limiter }, view.capacity);
  metrics.inFlightCap.set({ limiter }, view.inFlightMax);
  metrics.revision.set({ limiter }, view.revision);
  metrics.epoch.set({ limiter }, view.epoch);
  metrics.gliding.set({ limiter }, view.gliding ? 1 : 0);
  for (const state of STATES) metrics.state.set({ limiter, state }, view.state === state ? 1 : 0);
  for (const hold of HOLDS) metrics.held.set({ limiter, hold }, view.held === hold ? 1 : 0);
}

/** What is known of the traffic and the signals; an unknown number shows as NaN, never as 0. */
export function reportSample(metrics: Metrics, limiter: string, sample: Sample): void {
  metrics.lastSeen.keep('sample', limiter, () => showSample(metrics, limiter, sample));
}

function showSample(metrics: Metrics, limiter: string, sample: Sample): void {
  const { traffic, signals } = sample;
  metrics.offered.set({ limiter }, traffic.offeredRate);
  metrics.admitted.set({ limiter }, traffic.admittedRate);
  const ratio = demandRatio(sample);
  // Absent, not NaN: an autoscaler then leaves things as they are.
  if (ratio === null) metrics.demandRatio.remove({ limiter });
  else metrics.demandRatio.set({ limiter }, ratio);
  metrics.denied.set({ limiter, limit: 'rate' }, traffic.deniedByRate);
  metrics.denied.set({ limiter, limit: 'in_flight' }, traffic.deniedByCap);
  metrics.processes.set({ limiter, reports_completions: 'yes' }, traffic.reporting);
  metrics.processes.set(
    { limiter, reports_completions: 'no' },
    Math.max(0, traffic.processes - traffic.reporting),
  );
  metrics.errorRatio.set({ limiter }, traffic.errorRatio ?? Number.NaN);
  metrics.latencyMean.set(
    { limiter },
    traffic.meanMs === null ? Number.NaN : traffic.meanMs / 1000,
  );
  metrics.inFlight.set({ limiter }, traffic.inFlightNow ?? traffic.inFlight ?? Number.NaN);
  for (const [signal, estimate] of Object.entries(signals)) {
    metrics.signalValue.set({ limiter, signal }, estimate.value ?? Number.NaN);
    metrics.signalFresh.set({ limiter, signal }, estimate.fresh ? 1 : 0);
    metrics.signalAge.set({ limiter, signal }, estimate.ageMs / 1000);
  }
}

/** The law's terms and what the guards did to its proposal. */
export function reportDecision(metrics: Metrics, limiter: string, decision: Decision): void {
  metrics.lastSeen.keep('decision', limiter, () => showDecision(metrics, limiter, decision));
  for (const { guard, effect } of decision.verdicts) {
    if (effect !== 'passed') metrics.verdicts.inc({ limiter, guard, effect });
  }
}

function showDecision(metrics: Metrics, limiter: string, decision: Decision): void {
  for (const [term, value] of Object.entries(decision.terms)) {
    metrics.term.set({ limiter, term }, value);
  }
  metrics.atFloorTicks.set({ limiter }, decision.terms.atFloorTicks ?? 0);
  metrics.shed.set({ limiter }, decision.terms.shed ?? 0);
}

/** After each turn: does this daemon lead, and by which token? */
export function reportLease(metrics: Metrics, limiter: string, token: number | null): void {
  metrics.lastSeen.keep('lease', limiter, () => {
    metrics.leaseHeld.set({ limiter }, token === null ? 0 : 1);
    metrics.fence.set({ limiter }, token ?? 0);
    // An autoscaler must not follow what this daemon no longer sees.
    if (token === null) metrics.demandRatio.remove({ limiter });
  });
}
