/** Counts what a process did since the last flush, in numbers and typed arrays: no allocation a request. Stage: enforce. */
import { FIELD } from '../redis/telemetry-fields.js';
import { createLatencyBins } from './latency-bins.js';

export type Outcome = 'ok' | 'failed' | 'timed_out' | 'cancelled';

export interface OutcomeInfo {
  /** Error code of a failure: `SYSTEMERROR`, `HTTP_503`. */
  code?: string;
  /** The upstream that this request called. */
  upstream?: string;
  /** Time the request waited for a database connection. */
  dbWaitMs?: number;
}

/** Distinct codes, upstreams and generations told apart in one second; the rest counts as `other`. */
const MAX_NAMES = 64;

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

export function createRecorder(): Recorder {
  let offered = 0;
  let admitted = 0;
  let ok = 0;
  let failed = 0;
  let timedOut = 0;
  let cancelled = 0;
  // The generation nearly all outcomes belong to has plain counters; strays go to `named`.
  let generation = 0;
  let generationOk = 0;
  let generationFailed = 0;
  const latency = createLatencyBins();
  const dbWait = createLatencyBins();
  const named = new Map<string, number>();
  /** Denials by our own reasons: a closed set. */
  const denials = new Map<string, number>();

  /** Names that callers make up; beyond the limit they count as `other`. */
  function count(field: string, other: string): void {
    const seen = named.get(field);
    if (seen !== undefined) named.set(field, seen + 1);
    else if (named.size < MAX_NAMES) named.set(field, 1);
    else named.set(other, (named.get(other) ?? 0) + 1);
  }

  function failure(code: string, of: number): void {
    count(FIELD.code(code), FIELD.code('other'));
    count(FIELD.generationCode(of, code), FIELD.generationCode(of, 'other'));
  }

  function byUpstream(upstream: string, failedThere: boolean, code: string | undefined): void {
    if (!failedThere) {
      count(FIELD.upstreamOk(upstream), FIELD.upstreamOk('other'));
      return;
    }
    count(FIELD.upstreamFailed(upstream), FIELD.upstreamFailed('other'));
    if (code === undefined) return;
    count(FIELD.upstreamCode(upstream, code), FIELD.upstreamCode('other', 'other'));
  }

  function byGeneration(of: number, good: boolean): void {
    if (of !== generation) {
      if (generationOk + generationFailed === 0) generation = of;
      else {
        const field = good ? FIELD.generationOk(of) : FIELD.generationFailed(of);
        named.set(field, (named.get(field) ?? 0) + 1);
        return;
      }
    }
    if (good) generationOk += 1;
    else generationFailed += 1;
  }

  return {
    offered() {
      offered += 1;
    },
    admitted() {
      admitted += 1;
    },
    denied(reason) {
      const field = FIELD.denied(reason);
      denials.set(field, (denials.get(field) ?? 0) + 1);
    },
    wouldDeny(reason) {
      const field = FIELD.wouldDeny(reason);
      denials.set(field, (denials.get(field) ?? 0) + 1);
    },
    outcome(outcome, latencyMs, of, info) {
      if (outcome === 'cancelled') {
        cancelled += 1;
        return;
      }
      const good = outcome === 'ok';
      if (good) ok += 1;
      else if (outcome === 'failed') failed += 1;
      else timedOut += 1;
      latency.add(latencyMs);
      byGeneration(of, good);
      const code = good
        ? undefined
        : (info?.code ?? (outcome === 'timed_out' ? 'TIMEOUT' : undefined));
      if (code !== undefined) failure(code, of);
      if (info === undefined) return;
      if (info.upstream !== undefined) byUpstream(info.upstream, !good, code);
      if (info.dbWaitMs !== undefined && info.dbWaitMs >= 0) dbWait.add(info.dbWaitMs);
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
      put(FIELD.generationOk(generation), generationOk);
      put(FIELD.generationFailed(generation), generationFailed);
      latency.each((bin, n) => add(FIELD.latency(bin), n));
      put(FIELD.latencySumUs, Math.round(latency.sumMs() * 1000));
      dbWait.each((bin, n) => add(FIELD.dbWait(bin), n));
      put(FIELD.dbWaitSumUs, Math.round(dbWait.sumMs() * 1000));
      for (const [field, n] of named) add(field, n);
      for (const [field, n] of denials) add(field, n);
      offered = admitted = ok = failed = timedOut = cancelled = 0;
      generationOk = generationFailed = 0;
      latency.clear();
      dbWait.clear();
      named.clear();
      denials.clear();
    },
  };
}

/** A failure's code from whatever was thrown: its own, else its name (a DOMException's number says nothing). */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  if (typeof code === 'string' && code !== '') return code;
  if (error instanceof Error && error.name !== 'Error') return error.name;
  return typeof code === 'number' ? String(code) : undefined;
}
