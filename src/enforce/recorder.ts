/** Counts what a process did since the last flush, in numbers and typed arrays: no allocation a request. Stage: enforce. */
import { FIELD } from '../redis/telemetry-fields.js';
import { binFields, createLatencyBins } from './latency-bins.js';
import { createRouteTimes } from './route-times.js';
import { createNames, createTally, type Tally } from './tally.js';

export type Outcome = 'ok' | 'failed' | 'timed_out' | 'cancelled';

export interface OutcomeInfo {
  /** Error code of a failure: `SYSTEMERROR`, `HTTP_503`. */
  code?: string;
  /** The upstream that this request called. */
  upstream?: string;
  /** Time the request waited for a database connection. */
  dbWaitMs?: number;
  /** The kind of request, by its pattern: `GET /orders/:id`. Middleware knows it. */
  route?: string;
}

/** A decision, or several as one: told when its request ends. */
interface Ending {
  done(outcome: Outcome, info?: OutcomeInfo): void;
}

export interface Recorder {
  offered(): void;
  admitted(): void;
  denied(reason: string): void;
  /** Shadow: admitted, but the limit would have denied it. */
  wouldDeny(reason: string): void;
  outcome(outcome: Outcome, latencyMs: number, generation: number, info?: OutcomeInfo): void;
  /** Integer fields of the interval; empties the counts. */
  drain(add: (field: string, count: number) => void): void;
}

/** Outcomes of one breaker generation, or of one upstream. */
interface Outcomes {
  ok: number;
  failed: number;
  codes: Tally;
}

function createOutcomes(): Outcomes {
  return { ok: 0, failed: 0, codes: createTally() };
}

function countOutcome(into: Outcomes, good: boolean, code: string | undefined): void {
  if (good) into.ok += 1;
  else into.failed += 1;
  if (code !== undefined) into.codes.of(code).n += 1;
}

/** A database wait above a day is no measurement, and a sum must stay a number. */
const LONGEST_WAIT_MS = 86_400_000;
/** As many characters of a name as telemetry keeps. */
const NAME_LENGTH = 64;

/** Callers hand on whatever an error carries: `code: 500`, null, a text of any length. */
function nameOf(name: unknown): string | undefined {
  if (typeof name === 'string')
    return name.length > NAME_LENGTH ? name.slice(0, NAME_LENGTH) : name;
  return typeof name === 'number' ? String(name) : undefined;
}

const latencyField = binFields(FIELD.latency);
const failedLatencyField = binFields(FIELD.failedLatency);
const dbWaitField = binFields(FIELD.dbWait);

/** Names become fields only when drained: on a request they are nothing but keys of a map. */
export function createRecorder(): Recorder {
  let offered = 0;
  let admitted = 0;
  let ok = 0;
  let failed = 0;
  let timedOut = 0;
  let cancelled = 0;
  const latency = createLatencyBins(latencyField);
  const failedLatency = createLatencyBins(failedLatencyField);
  const dbWait = createLatencyBins(dbWaitField);
  const routes = createRouteTimes();
  const denied = createTally();
  const wouldDeny = createTally();
  const upstreams = createNames(createOutcomes);
  const generations = new Map<number, Outcomes>();
  let newest: Outcomes = createOutcomes();
  let newestId = Number.NaN;

  function generation(id: number): Outcomes {
    if (id === newestId) return newest;
    newest = generations.get(id) ?? createOutcomes();
    newestId = id;
    generations.set(id, newest);
    return newest;
  }

  return {
    offered() {
      offered += 1;
    },
    admitted() {
      admitted += 1;
    },
    denied(reason) {
      denied.of(reason).n += 1;
    },
    wouldDeny(reason) {
      wouldDeny.of(reason).n += 1;
    },
    outcome(outcome, latencyMs, id, info) {
      if (outcome === 'cancelled') {
        cancelled += 1;
        return;
      }
      const good = outcome === 'ok';
      if (good) ok += 1;
      else if (outcome === 'failed') failed += 1;
      else timedOut += 1;
      latency.add(latencyMs);
      if (!good) failedLatency.add(latencyMs);
      const code = good
        ? undefined
        : (nameOf(info?.code) ?? (outcome === 'timed_out' ? 'TIMEOUT' : undefined));
      countOutcome(generation(id), good, code);
      if (info == null) return;
      const upstream = nameOf(info.upstream);
      if (upstream !== undefined) countOutcome(upstreams.of(upstream), good, code);
      const waitMs = info.dbWaitMs;
      if (typeof waitMs === 'number' && waitMs >= 0 && waitMs <= LONGEST_WAIT_MS)
        dbWait.add(waitMs);
      const route = nameOf(info.route);
      if (route !== undefined && latencyMs >= 0) routes.add(route, latencyMs);
    },
    drain(add) {
      const put = (field: string, n: number) => {
        if (n > 0) add(field, n);
      };
      put(FIELD.offered, offered);
      put(FIELD.admitted, admitted);
      put(FIELD.ok, ok);
      put(FIELD.failed, failed);
      put(FIELD.timedOut, timedOut);
      put(FIELD.cancelled, cancelled);
      denied.each((reason, { n }) => add(FIELD.denied(reason), n));
      wouldDeny.each((reason, { n }) => add(FIELD.wouldDeny(reason), n));
      latency.each(add);
      failedLatency.each(add);
      put(FIELD.latencySumUs, Math.round(latency.sumMs() * 1000));
      dbWait.each(add);
      put(FIELD.dbWaitSumUs, Math.round(dbWait.sumMs() * 1000));
      routes.each((route, count, sumMs) => {
        add(FIELD.routeAnswers(route), count);
        put(FIELD.routeSumUs(route), Math.round(sumMs * 1000));
      });
      upstreams.each((upstream, of) => {
        put(FIELD.upstreamOk(upstream), of.ok);
        put(FIELD.upstreamFailed(upstream), of.failed);
        of.codes.each((code, { n }) => add(FIELD.upstreamCode(upstream, code), n));
      });
      generations.forEach((of, id) => {
        put(FIELD.generationOk(id), of.ok);
        put(FIELD.generationFailed(id), of.failed);
        of.codes.each((code, { n }) => {
          add(FIELD.generationCode(id, code), n);
          add(FIELD.code(code), n);
        });
      });
      offered = admitted = ok = failed = timedOut = cancelled = 0;
      for (const each of [latency, failedLatency, dbWait, routes]) each.clear();
      for (const each of [denied, wouldDeny, upstreams, generations]) each.clear();
      newestId = Number.NaN;
    },
  };
}

/** Ends an admitted request by what its work threw. */
export function endFailed(decision: Ending, error: unknown): void {
  const code = codeOf(error);
  decision.done(outcomeOf(error), code === undefined ? undefined : { code });
}

/** A failure's code from whatever was thrown: its own, else its name (a DOMException's number says nothing). */
export function codeOf(error: unknown): string | undefined {
  const code = fieldOf(error, 'code');
  if (typeof code === 'string' && code !== '') return code;
  const name = error instanceof Error ? fieldOf(error, 'name') : undefined;
  if (typeof name === 'string' && name !== 'Error') return name;
  return typeof code === 'number' ? String(code) : undefined;
}

/** How a call ended that threw `error`. */
export function outcomeOf(error: unknown): Outcome {
  const name = fieldOf(error, 'name');
  if (name === 'AbortError') return 'cancelled';
  return name === 'TimeoutError' ? 'timed_out' : 'failed';
}

/** Anything can be thrown, also what throws when it is looked at: the request has ended all the same. */
function fieldOf(error: unknown, field: 'code' | 'name'): unknown {
  try {
    return (error as Record<string, unknown> | null | undefined)?.[field];
  } catch {
    return undefined;
  }
}
