/** The public surface: the SDK, policies as code, errors. Stage: all. */

export type { OnRedisError } from './enforce/arguments.js';
export type { Count } from './enforce/count.js';
export {
  type DecisionReason,
  type DecisionSource,
  FlyballDeniedError,
  type LimitName,
  type TakeDecision,
} from './enforce/decision.js';
export { type HeaderOptions, headersOf } from './enforce/headers.js';
export { createLimiter, type Limiter } from './enforce/limiter.js';
export type { LimiterOptions } from './enforce/options.js';
export type { OutcomeOptions, OutcomeResult } from './enforce/outcomes.js';
export { type Problem, problemOf, statusOf } from './enforce/problem.js';
export {
  createQueueGate,
  type QueueAnswer,
  type QueueGate,
  type QueueGateOptions,
  type QueueWish,
} from './enforce/queue-gate.js';
export type { Outcome, OutcomeInfo } from './enforce/recorder.js';
export type { Refund, RefundRefusal } from './enforce/refund-answer.js';
export type { RouteEntry } from './enforce/route-table.js';
export {
  createRoutes,
  type RouteMatch,
  type RouteRequest,
  type Routes,
  type RoutesOptions,
} from './enforce/routes.js';
export { LATENCY_EDGES_MS, type LimiterStats } from './enforce/stats.js';
export type { Attributes } from './enforce/subject-template.js';
export { type TakeAll, takeAll } from './enforce/take-all.js';
export type { TakeAllOptions, TakeAllWish } from './enforce/take-all-checks.js';
export type { TakeAllDecision } from './enforce/take-all-decision.js';
export type {
  TakeManyOptions,
  TakeManyWish,
  TakeOptions,
  WaitOptions,
} from './enforce/take-options.js';
export type { TakeSpan, TakeTracer } from './enforce/tracing.js';
export type { LimiterWarning } from './enforce/warnings.js';
export {
  type ErrorCode,
  FlyballError,
  FlyballTypeError,
  PolicyError,
  type PolicyFault,
} from './errors.js';
export {
  adaptive,
  aimd,
  alertmanager,
  custom,
  definePolicy,
  dingtalk,
  downstream,
  email,
  env,
  feishu,
  fixed,
  mysql,
  pagerduty,
  pi,
  postgres,
  prometheus,
  scrape,
  slack,
  step,
  telemetry,
  upstream,
  upstreamErrors,
  webhook,
  wecom,
} from './policy/author.js';
export type { Priority } from './redis/calls.js';
export type { LimiterState, Mode } from './redis/params.js';
export { VERSION } from './version.js';
