/** A history from Prometheus: Flyball's own metrics of the limiter, or queries of the user's, over a range of time. Stage: cli. */
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { takeLogin } from '../login.js';
import type { Policy } from '../policy/schema.js';
import type { Recorded } from '../sim/replay-recorded.js';
import { recordedFrom } from './backtest-columns.js';

const STEP_MS = 60_000;
/** Prometheus refuses more than 11,000 points of a series at once. */
const POINTS_AT_ONCE = 10_000;
const DEADLINE_MS = 30_000;

export interface PrometheusRange {
  url: string;
  limiter: string;
  fromMs: number;
  toMs: number;
  /** PromQL by column or signal; they count before Flyball's own metrics. */
  queries: Readonly<Record<string, string>>;
  /** Sent with each question. */
  headers?: Readonly<Record<string, string>>;
}

interface Series {
  metric: Record<string, string>;
  /** Seconds since 1970, and the number as text. */
  values: [number, string][];
}

type Minutes = Map<number, Record<string, number>>;

/** Oldest first; minutes without any answer known are left out. */
export async function readPrometheus(policy: Policy, range: PrometheusRange): Promise<Recorded[]> {
  const minutes: Minutes = new Map();
  for (const [name, query] of Object.entries(ownQueries(range.limiter))) {
    add(minutes, await ask(range, query), (metric) => nameIn(name, metric));
  }
  for (const values of minutes.values()) deriveAnswers(values);
  for (const [name, query] of Object.entries(range.queries)) {
    const series = await ask(range, query);
    if (series.length > 1) {
      throw fault(
        `the query of ${name} gives ${series.length} series: make one of them, with sum(…) or max(…)`,
      );
    }
    for (const values of minutes.values()) delete values[name];
    add(minutes, series, () => name);
  }
  return [...minutes]
    .sort(([a], [b]) => a - b)
    .flatMap(([endMs, values]) => {
      // A value of a moment speaks of the minute before it.
      const at = { atMs: endMs - STEP_MS, spanMs: STEP_MS };
      return recordedFrom(policy, at, values) ?? [];
    });
}

/** Those with several series at once tell them apart by a label. */
function nameIn(name: string, metric: Record<string, string>): string {
  if (name === 'signal') return metric.signal ?? '';
  if (name === 'denied' && metric.limit === 'in_flight') return 'deniedByCapPerSecond';
  return name === 'denied' ? 'deniedPerSecond' : name;
}

/** Every daemon shows all limiters; a daemon that was lost shows none. */
function ownQueries(limiter: string): Record<string, string> {
  const of = (metric: string, more = '') =>
    `avg_over_time(${metric}{limiter=${JSON.stringify(limiter)}${more}}[1m])`;
  const most = (metric: string) => `max(${of(metric)})`;
  return {
    offeredPerSecond: most('flyball_sense_offered_requests_per_second'),
    admittedPerSecond: most('flyball_sense_admitted_requests_per_second'),
    denied: `max by (limit) (${of('flyball_sense_denied_requests_per_second')})`,
    errorRatio: most('flyball_estimate_error_ratio'),
    meanMs: `1000 * ${most('flyball_estimate_latency_mean_seconds')}`,
    inFlight: most('flyball_estimate_in_flight_requests'),
    rate: most('flyball_enforce_rate_tokens_per_second'),
    inFlightMax: most('flyball_enforce_in_flight_cap_requests'),
    signal: `max by (signal) (${of('flyball_estimate_signal_value')})`,
  };
}

/** The metrics tell what was admitted and the share of errors, not the answers. */
function deriveAnswers(values: Record<string, number>): void {
  const { admittedPerSecond, errorRatio = 0 } = values;
  if (admittedPerSecond === undefined) return;
  values.okPerSecond = admittedPerSecond * (1 - errorRatio);
  values.failedPerSecond = admittedPerSecond * errorRatio;
}

function add(
  minutes: Minutes,
  series: readonly Series[],
  nameOf: (metric: Record<string, string>) => string,
): void {
  for (const { metric, values } of series) {
    for (const [seconds, text] of values) {
      const value = Number(text);
      // NaN is 0 of 0, and as good as no sample.
      if (!Number.isFinite(value) || value < 0) continue;
      const atMs = Math.round(seconds * 1000);
      const minute = minutes.get(atMs) ?? {};
      minute[nameOf(metric)] = value;
      minutes.set(atMs, minute);
    }
  }
}

/** `/api/v1/query_range`, in as many parts as the range needs, on whole minutes. */
async function ask(range: PrometheusRange, query: string): Promise<Series[]> {
  const first = Math.ceil(range.fromMs / STEP_MS) * STEP_MS;
  const series = new Map<string, Series>();
  for (let from = first; from <= range.toMs; from += POINTS_AT_ONCE * STEP_MS) {
    const to = Math.min(range.toMs, from + (POINTS_AT_ONCE - 1) * STEP_MS);
    for (const part of await askPart(range, query, from, to)) {
      const key = JSON.stringify(Object.entries(part.metric).sort());
      const known = series.get(key);
      if (known === undefined) series.set(key, part);
      else known.values.push(...part.values);
    }
  }
  return [...series.values()];
}

async function askPart(
  { url: base, headers: own }: PrometheusRange,
  query: string,
  fromMs: number,
  toMs: number,
): Promise<Series[]> {
  const url = new URL(base);
  const login = takeLogin(url);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/api/v1/query_range`;
  url.searchParams.set('query', query);
  url.searchParams.set('start', String(fromMs / 1000));
  url.searchParams.set('end', String(toMs / 1000));
  url.searchParams.set('step', String(STEP_MS / 1000));
  const headers = new Headers(own);
  if (login !== null && !headers.has('authorization')) {
    headers.set('authorization', login.authorization);
  }
  let status = 0;
  let body: string;
  try {
    const reply = await fetch(url, { headers, signal: AbortSignal.timeout(DEADLINE_MS) });
    status = reply.status;
    body = await reply.text();
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    throw fault(`${redactUrl(base)} does not answer (${cause?.code ?? message})`);
  }
  return seriesOf(body, status, base, query);
}

function seriesOf(body: string, status: number, base: string, query: string): Series[] {
  if (status === 401 || status === 403) {
    throw fault(
      `${redactUrl(base)} refuses the login (status ${status}): give it in the address, http://user:password@…, or by --header 'Authorization=env:NAME'`,
    );
  }
  let parsed: { status?: string; error?: string; data?: { resultType?: string; result?: unknown } };
  try {
    parsed = JSON.parse(body) as typeof parsed;
  } catch {
    throw fault(`${redactUrl(base)} answers with status ${status} and no JSON: is it Prometheus?`);
  }
  if (parsed?.status !== 'success') {
    throw fault(`it refuses ${query}: ${parsed?.error ?? `status ${status}`}`);
  }
  const { resultType, result } = parsed.data ?? {};
  if (resultType !== 'matrix' || !Array.isArray(result)) {
    throw fault(`${query} gives no series over time (${resultType ?? 'nothing'})`);
  }
  return (result as Partial<Series>[]).map(({ metric = {}, values = [] }) => ({ metric, values }));
}

function fault(what: string): FlyballError {
  return new FlyballError('FLYBALL_E_BACKTEST_PROMETHEUS', `Prometheus: ${what}.`);
}
