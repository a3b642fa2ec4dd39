/** The daemon's Prometheus metrics: `flyball_<stage>_<what>_<unit>`, labels by limiter, never by subject. Stage: report. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from '../version.js';
import { createLastSeen } from './last-seen.js';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export type Metrics = ReturnType<typeof createMetrics>;

/** All metrics of one daemon on a registry of its own, so that several daemons fit in one process. */
export function createMetrics(daemonName: string) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const lastSeen = createLastSeen();
  const collect = lastSeen.show;
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Gauge({ name: `flyball_${name}`, help, labelNames: [...labelNames], registers, collect });
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Counter({ name: `flyball_${name}`, help, labelNames: [...labelNames], registers });
  const limiter = ['limiter'] as const;

  const metrics = {
    registry,
    lastSeen,

    // In force, as Redis enforces it at the tick.
    rate: gauge(
      'enforce_rate_tokens_per_second',
      'Rate in force: 0 while open, the probe rate while half-open.',
      limiter,
    ),
    capacity: gauge('enforce_capacity_tokens', 'Capacity in force.', limiter),
    inFlightCap: gauge(
      'enforce_in_flight_cap_requests',
      'In-flight cap in force; 0 when there is none.',
      limiter,
    ),
    state: gauge('enforce_state', '1 for the state the limiter is in.', ['limiter', 'state']),
    held: gauge('enforce_held', '1 while a person holds the limiter.', ['limiter', 'hold']),
    gliding: gauge('enforce_gliding', '1 while the limits glide to their safe values.', limiter),

    // What the services report.
    offered: gauge(
      'sense_offered_requests_per_second',
      'Requests that asked for admission.',
      limiter,
    ),
    admitted: gauge('sense_admitted_requests_per_second', 'Requests admitted.', limiter),
    demandRatio: gauge(
      'enforce_demand_ratio',
      'Requests asked for ÷ requests that the limits could admit; only where this daemon leads.',
      limiter,
    ),
    denied: gauge('sense_denied_requests_per_second', 'Requests denied, by what denied them.', [
      'limiter',
      'limit',
    ]),
    servicesSkew: gauge(
      'sense_services_clock_skew_seconds',
      'How far Redis is ahead of the process whose clock is furthest off; 0 within a second.',
      limiter,
    ),
    processes: gauge('sense_processes', 'SDK processes that sent telemetry.', [
      'limiter',
      'reports_completions',
    ]),

    // After smoothing.
    signalValue: gauge('estimate_signal_value', 'Smoothed value of a signal, in its own unit.', [
      'limiter',
      'signal',
    ]),
    signalFresh: gauge('estimate_signal_fresh', '1 when the signal may raise or trip.', [
      'limiter',
      'signal',
    ]),
    signalAge: gauge('estimate_signal_age_seconds', 'Age of the newest data of a signal.', [
      'limiter',
      'signal',
    ]),
    errorRatio: gauge('estimate_error_ratio', 'Failed answers ÷ answers, 0 … 1.', limiter),
    latencyMean: gauge('estimate_latency_mean_seconds', 'Mean time of admitted requests.', limiter),
    inFlight: gauge('estimate_in_flight_requests', 'Admitted requests under way.', limiter),

    // The law.
    term: gauge('decide_term', 'Internal term of the law at the last tick.', ['limiter', 'term']),
    atFloorTicks: gauge(
      'decide_at_floor_ticks',
      'Ticks at the least that the bounds allow, with the service still above its setpoint.',
      limiter,
    ),
    shed: gauge(
      'decide_shed_ratio',
      'Part of the last good rate that a breaker sheds in proportion now; 0: none.',
      limiter,
    ),
    wouldBeRate: gauge(
      'decide_would_be_rate_tokens_per_second',
      'Rate the law would set, in recommend and shadow mode.',
      limiter,
    ),
    wouldBeCap: gauge(
      'decide_would_be_in_flight_cap_requests',
      'In-flight cap the law would set, in recommend and shadow mode.',
      limiter,
    ),
    verdicts: counter('guard_verdicts_total', 'Proposals that a guard lowered, held or refused.', [
      'limiter',
      'guard',
      'effect',
    ]),

    // Writing.
    revision: gauge('actuate_revision', 'Revision of the params in force.', limiter),
    epoch: gauge('actuate_epoch', 'Epoch of the params in force.', limiter),
    changes: counter('actuate_changes_total', 'Changes of params written by this daemon.', [
      'limiter',
      'reason',
    ]),
    refusals: counter('actuate_refusals_total', 'Writes of this daemon that Redis refused.', [
      'limiter',
      'reason',
    ]),
    auditFailures: counter(
      'actuate_audit_failures_total',
      'Audit entries or params that could not be written or read.',
      limiter,
    ),
    clockRegressions: counter(
      'actuate_clock_regressions_total',
      'Times that the Redis clock was found behind the last change.',
      limiter,
    ),
    leaseHeld: gauge('actuate_lease_held', '1 while this daemon may actuate.', limiter),
    failovers: counter(
      'actuate_redis_failovers_total',
      'Times that another Redis server took over, by whether writes were found to be lost.',
      ['limiter', 'writes'],
    ),
    handovers: counter(
      'actuate_handovers_total',
      'Leases that this daemon gave to another whose limiter it is.',
      limiter,
    ),
    fence: gauge('actuate_fence_token', 'Fencing token of the lease held; 0 without one.', limiter),

    // The audit log's exports.
    auditExported: counter(
      'audit_exported_entries_total',
      'Audit entries exported by this daemon.',
      ['exporter'],
    ),
    auditExportFailures: counter(
      'audit_export_failures_total',
      'Exports of audit logs that failed and are tried again.',
      ['exporter'],
    ),
    auditExportLag: gauge(
      'audit_export_lag_seconds',
      'Age of the oldest audit entry still to be exported; only where this daemon exports.',
      ['exporter'],
    ),
    auditExporting: gauge('audit_exporting', '1 where this daemon is the one that exports.', [
      'exporter',
    ]),
    auditTrimmed: counter('audit_trimmed_entries_total', 'Audit entries trimmed from Redis.', [
      'limiter',
      'exported',
    ]),

    // Policies.
    policyLoadSuccess: gauge(
      'policy_load_success',
      '1 when the last reading of all policy files was without fault.',
      [],
    ),
    policyFaults: gauge('policy_load_faults', 'Faults found at the last reading.', []),
    policyDrift: gauge(
      'policy_drift',
      '1 when the file here differs from the adopted policy, or is pending.',
      limiter,
    ),

    // The daemon itself.
    tickDuration: new Histogram({
      name: 'flyball_daemon_tick_duration_seconds',
      help: 'Time of one turn of one limiter.',
      labelNames: ['limiter'],
      buckets: SECONDS,
      registers,
    }),
    overruns: counter(
      'daemon_tick_overruns_total',
      'Ticks skipped because the turn before still ran.',
      limiter,
    ),
    errors: counter('daemon_errors_total', 'Turns that ended in an error.', limiter),
    clockSkew: gauge(
      'daemon_clock_skew_seconds',
      'How far that clock is ahead of the daemon, measured each minute.',
      ['of'],
    ),
    alerts: counter('daemon_alerts_total', 'Alerts told by this daemon.', [
      'limiter',
      'kind',
      'state',
    ]),
    notifications: counter(
      'daemon_notifications_total',
      'Messages to destinations of alerts, by how they ended.',
      ['to', 'outcome'],
    ),
    daemons: gauge('daemon_fleet_daemons', 'Daemons that live, as this one was told.', []),
    apiRequests: counter('api_requests_total', 'Requests of the HTTP API, by how they ended.', [
      'route',
      'status',
    ]),
    apiStreams: gauge('api_stream_clients', 'Clients that follow the stream.', []),
    redisUp: gauge('daemon_redis_up', '1 when the last turn reached Redis.', []),
    info: gauge('daemon_info', 'Always 1; labels say which daemon this is.', ['name', 'version']),
  };
  metrics.info.set({ name: daemonName, version: VERSION }, 1);
  return metrics;
}
