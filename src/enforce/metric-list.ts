/** The metrics of a limiter in a service: name, help, labels, and how its counters fill them. Stage: enforce → report. */
import { type LimiterState, MODES } from '../redis/params.js';
import { type DecisionReason, limitOf } from './decision.js';
import type { LimiterStats } from './stats.js';

/** One value and its labels, beside `limiter`. */
type Value = readonly [value: number, labels?: Readonly<Record<string, string>>];

export interface MetricSpec {
  kind: 'counter' | 'gauge';
  /** Without `flyball_enforce_`. */
  name: string;
  help: string;
  labels?: readonly string[];
  /** What several workers of one process make together; default: their sum. */
  together?: 'max' | 'min';
  values(stats: LimiterStats): readonly Value[];
}

const STATES = ['closed', 'open', 'half-open', 'recovering'] as const satisfies LimiterState[];
/** Decided without Redis. */
const FALLBACK = ['local', 'open', 'closed'] as const;

const one = (value: number): Value[] => [[value]];
const maybe = (value: number | null | undefined): Value[] => (value == null ? [] : [[value]]);
const bySource = (counts: Record<string, number>, sources: readonly string[]): Value[] =>
  sources.map((source) => [counts[source] ?? 0, { source }]);
const byReason = (counts: Record<string, number>): Value[] =>
  Object.entries(counts).map(([reason, n]) => [
    n,
    { limit: limitOf(reason as DecisionReason) ?? 'none', reason },
  ]);
const oneOf = (label: string, all: readonly string[], now: string | undefined): Value[] =>
  now === undefined ? [] : all.map((each) => [each === now ? 1 : 0, { [label]: each }]);

const counter = (
  name: string,
  help: string,
  values: MetricSpec['values'],
  labels: readonly string[] = [],
): MetricSpec => ({ kind: 'counter', name, help, values, labels });

const gauge = (
  name: string,
  help: string,
  values: MetricSpec['values'],
  more: Pick<MetricSpec, 'labels' | 'together'> = {},
): MetricSpec => ({ kind: 'gauge', name, help, values, ...more });

export const METRICS: readonly MetricSpec[] = [
  counter(
    'decisions_total',
    'Decisions, by who took them.',
    ({ decisions }) => Object.entries(decisions).map(([source, n]) => [n, { source }]),
    ['source'],
  ),
  counter('admitted_requests_total', 'Requests admitted.', (stats) => one(stats.admitted)),
  counter(
    'denied_requests_total',
    'Requests denied, by the limit and the reason.',
    (stats) => byReason(stats.denied),
    ['limit', 'reason'],
  ),
  counter(
    'near_limit_requests_total',
    'Requests admitted by Redis with at most a fifth of the capacity left.',
    (stats) => one(stats.nearLimit),
  ),
  counter(
    'shadow_denied_requests_total',
    'Shadow mode: requests admitted that enforcement would have denied.',
    (stats) => byReason(stats.wouldDeny),
    ['limit', 'reason'],
  ),
  counter(
    'fallback_decisions_total',
    'Decisions taken without Redis, by how.',
    ({ decisions }) => bySource(decisions, FALLBACK),
    ['source'],
  ),
  counter(
    'unmanaged_decisions_total',
    'Decisions of Redis by numbers passed along, since it has no params for the limiter.',
    ({ decisions }) => one(decisions.unmanaged ?? 0),
  ),
  counter(
    'cached_decisions_total',
    'Denials of Redis that were repeated here while they held.',
    ({ decisions }) => one(decisions.cached ?? 0),
  ),

  gauge('revision', 'Revision of the params in use here.', (s) => maybe(s.inForce?.revision), {
    together: 'max',
  }),
  gauge('epoch', 'Their epoch.', (s) => maybe(s.inForce?.epoch), { together: 'max' }),
  gauge(
    'state',
    '1 for the state the limiter is in.',
    (s) => oneOf('state', STATES, s.inForce?.state),
    { labels: ['state'], together: 'max' },
  ),
  gauge('mode', '1 for the mode the limiter is in.', (s) => oneOf('mode', MODES, s.inForce?.mode), {
    labels: ['mode'],
    together: 'max',
  }),
  gauge('in_flight_requests', 'Admitted requests under way here.', (s) => one(s.inFlight)),
  gauge(
    'in_flight_share_requests',
    "This process's part of the in-flight cap; absent without a cap.",
    (s) => maybe(s.share),
  ),
  gauge('processes', 'Live processes of the limiter, as last told.', (s) => one(s.processes), {
    together: 'max',
  }),

  gauge('redis_up', '1 while Redis answers in time.', (s) => one(s.redisUp ? 1 : 0), {
    together: 'min',
  }),
  counter('redis_calls_total', 'Script calls that decide takes.', (s) => one(s.calls)),
  counter('redis_late_calls_total', 'Calls too late to charge.', (s) => one(s.late)),
  counter(
    'redis_overtaken_calls_total',
    'Calls that charged in time but were answered after the deadline.',
    (s) => one(s.overtaken),
  ),
  counter('redis_errors_total', 'Calls that failed.', (s) => one(s.redisErrors)),
  counter('redis_outages_total', 'Times that Redis went away.', (s) => one(s.outages)),
  counter(
    'telemetry_dropped_intervals_total',
    'Seconds of telemetry that could not be sent.',
    (s) => one(s.telemetryDropped),
  ),
  counter(
    'rollout_shadow_requests_total',
    'Requests that a rollout has not reached, by what enforcement would have answered.',
    (s) => [
      [s.shadowAllowed, { would: 'admit' }],
      [s.shadowDenied, { would: 'deny' }],
    ],
    ['would'],
  ),
  counter(
    'overflow_requests_total',
    'Requests of subjects past the most that may live, which share one bucket.',
    (s) => one(s.overflow),
  ),
  counter('refunded_requests_total', 'Requests that Redis gave back.', (s) => one(s.refunded)),
  counter(
    'refunds_dropped_requests_total',
    'Requests that could not be given back: their tokens come back by the rate.',
    (s) => one(s.refundsDropped),
  ),
  counter('abandoned_requests_total', 'Admitted requests whose end nobody reported.', (s) =>
    one(s.abandoned),
  ),
  counter(
    'missing_attributes_requests_total',
    "Requests that lacked an attribute of the subject's template.",
    (s) => one(s.missingAttributes),
  ),
];

/** The one histogram. */
export const DECISION_TIME = {
  name: 'decision_duration_seconds',
  help: 'Time from the question to the decision.',
} as const;
