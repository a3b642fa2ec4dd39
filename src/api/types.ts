/** What the HTTP API under `/api/v1` answers, takes and streams, as types alone: for the daemon, the dashboard and your own client. Stage: api. */
import type { UnreadableEntry } from '../actuate/entry.js';
import type { ExplainVerdict } from '../actuate/explain.js';
import type { Decision } from '../decide/types.js';
import type { PolicyFault } from '../errors.js';
import type { Policy } from '../policy/schema.js';
import type { Params } from '../redis/params.js';
import type { DecisionSample } from '../redis/tail-fields.js';
import type { AlertsView } from '../view/alerts.js';
import type { DebugView } from '../view/debug-types.js';
import type { AuditRecord } from '../view/entry.js';
import type { EpisodesPage } from '../view/episodes.js';
import type { FleetDaemon, FleetView } from '../view/fleet.js';
import type { PlanView } from '../view/plan.js';
import type { PolicyHistory } from '../view/policy-history.js';
import type { ReportView } from '../view/report-types.js';
import type { SeriesView, SeriesWindow } from '../view/series-read.js';
import type { SignalView } from '../view/signals.js';
import type { StatusView } from '../view/status.js';
import type { TopView } from '../view/top.js';

/** Each may do what those before it may. */
export type Role = 'reader' | 'operator' | 'admin';

/** Any answer of 400 and above: `application/problem+json` (RFC 9457). */
export interface Problem {
  /** `urn:flyball:FLYBALL_E_…`: a name, not an address. */
  type: string;
  title: string;
  status: number;
  /** The fault, the value, what is allowed, what mends it. */
  detail: string;
  code: string;
  /** Each fault of a body or query: where, and what. */
  faults?: { field: string; message: string }[];
  /** With 409: where the limiter stands now. */
  current?: { epoch: number; revision: number };
}

/** `GET /session`: who is asking. */
export interface SessionAnswer {
  schema: 1;
  /** Name of the token; null: nobody has said who they are. */
  name: string | null;
  /** What this caller may do; null: nothing but to give a token. */
  role: Role | null;
  /** `open`: reading needs no token, since the daemon listens on loopback alone. */
  by: 'open' | 'token' | 'cookie' | 'nobody';
  /** When a cookie ends, daemon's wall ms; else null. */
  expiresMs: number | null;
  version: string;
  /** Name of the daemon that answers. */
  daemon: string;
}

/** `POST /session` → the answer above and a cookie; `DELETE /session` ends it. */
export interface SessionRequest {
  token: string;
}

/** `GET /limiters`. Rows are those of `flyball status --json`. */
export interface LimitersAnswer {
  schema: 1;
  /** Without its password. */
  redis: string;
  /** Redis ms. */
  atMs: number;
  limiters: StatusView[];
  /** Those that could not be read; the others are whole. */
  unreadable: { limiter: string; message: string }[];
}

/** `GET /limiters/{name}`. */
export interface LimiterAnswer {
  schema: 1;
  redis: string;
  atMs: number;
  limiter: StatusView;
  /** All that stands in Redis for it; null: not managed. */
  params: Params | null;
  /** Of the leader's last tick; null: nobody leads. */
  decision: LastDecision | null;
  /** The adopted policy. */
  policy: Policy | null;
}

export interface LastDecision
  extends Pick<
    Decision,
    'change' | 'reason' | 'sentence' | 'state' | 'rate' | 'capacity' | 'inFlightMax' | 'verdicts'
  > {
  atMs: number;
  tickMs: number;
  law: string;
  terms: Record<string, number>;
}

/** `GET /limiters/{name}/signals`: as `flyball signals --json`. */
export interface SignalsAnswer {
  schema: 1;
  limiter: string;
  /** Null: no daemon leads it with its adopted policy, so nobody reads its signals. */
  owner: string | null;
  ageMs: number | null;
  /** Why the daemon decides nothing at all. */
  held: string | null;
  signals: SignalView[];
}

/** `GET /limiters/{name}/series?window=15m`: columns of equal length, oldest first; null: not known. */
export interface SeriesAnswer extends SeriesView {
  schema: 1;
  limiter: string;
  /**
   * Points lie a second or more apart (15m, as far as somebody watched), else a minute; the last is of this moment.
   * Cap 0: none. Counts are requests per second. `bounds`: as they are now. Of `changes` the newest 500.
   */
  window: SeriesWindow;
}

export type { AuditRecord } from '../view/entry.js';

/** `GET /limiters/{name}/audit?limit&before&kind&since&until`, newest first. */
export interface AuditAnswer {
  schema: 1;
  limiter: string;
  entries: AuditRecord[];
  unreadable: UnreadableEntry[];
  /** Give it as `before` to read on; null: these were the oldest. */
  next: string | null;
}

/** `GET /limiters/{name}/revisions/{n}/explain?epoch`: as `flyball explain --json`. */
export interface ExplainAnswer {
  schema: 1;
  limiter: string;
  verdict: ExplainVerdict;
  sentence: string;
  differences: string[];
  decision: Decision | null;
  entry: AuditRecord;
  /** What the law saw, with setpoints; empty: no law took it. */
  signals: SignalView[];
}

/** `GET /limiters/{name}/decisions?ratio&limit`: as `flyball tail --json`; to ask is to have them sampled for some seconds. */
export interface DecisionsAnswer {
  schema: 1;
  limiter: string;
  /** Newest first. */
  samples: Omit<DecisionSample, 'u' | 'n'>[];
}

/** `GET /limiters/{name}/debug?subject=&cost=&priority=&request=`: as `flyball debug --json`. */
export interface DebugAnswer extends DebugView {
  schema: 1;
}

/** `GET /limiters/{name}/top?by=taken|denied&over=1m|5m|60m&limit`: as `flyball top --json`. */
export interface TopAnswer extends TopView {
  schema: 1;
}

/** `GET /episodes`, `GET /limiters/{name}/episodes?limit&before&since&until`. */
export interface EpisodesAnswer extends EpisodesPage {
  schema: 1;
}

/** `GET /limiters/{name}/report?since&suggest=1`, and `GET /report?since` over all: as `flyball report --json`. */
export interface ReportAnswer {
  schema: 1;
  sinceMs: number;
  atMs: number;
  limiters: ReportView[];
  /** Of all: those that nothing can be said of, and why. */
  unreadable: { limiter: string; message: string }[];
}

/** `GET /policies`: as `flyball plan --json`, of the files of the daemon that answers. */
export interface PoliciesAnswer extends PlanView {
  schema: 1;
  /** Of files that do not load. */
  faults: PolicyFault[];
}

/** `GET /policies/{name}/history`: as `flyball policy history --json`. */
export interface PolicyHistoryAnswer extends PolicyHistory {
  schema: 1;
}

/** `GET /fleet`. */
export interface FleetAnswer extends Omit<FleetView, 'daemons'> {
  schema: 1;
  /** `self`: the one that answers. */
  daemons: (FleetDaemon & { self: boolean })[];
}

/** `GET /alerts`: what fires, and what was told in the last day, by any daemon. */
export interface AlertsAnswer extends AlertsView {
  schema: 1;
}

export type * from './stream-types.js';
export type * from './verb-types.js';
