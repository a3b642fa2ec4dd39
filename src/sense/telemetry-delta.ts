/** Fields of telemetry seconds, as counts since the last look, → one telemetry reading. Pure. Stage: sense. */
import { binValue } from '../histogram.js';
import type { TelemetryReading } from './readings.js';

/** What HGETALL gave of one second, by field. */
export type SecondFields = Record<string, string>;

/** Sums of one interval, before gauges are divided by the flushes that gave them. */
export interface Delta {
  counts: Omit<
    Required<TelemetryReading>,
    'kind' | 'fromMs' | 'toMs' | 'processes' | 'reporting' | 'poolWaiting' | 'inFlight'
  >;
  /** Fields that grew. */
  grown: number;
  flushes: number;
  /** Processes that flushed, and those of them that report completions. */
  processes: Set<string>;
  reporting: Set<string>;
  inFlightSum: number;
  poolSum: number;
  poolFlushes: number;
  /** A field whose value is no count; everything of this look is then in doubt. */
  broken: string | undefined;
}

/** Names that services make up are keys here, so nothing is inherited from Object. */
const byName = <T>() => Object.create(null) as Record<string, T>;

export function emptyDelta(): Delta {
  return {
    counts: {
      offered: 0,
      admitted: 0,
      denied: byName(),
      wouldDeny: byName(),
      ok: 0,
      failed: 0,
      timedOut: 0,
      cancelled: 0,
      latency: {},
      latencySumMs: 0,
      failedLatency: {},
      codes: byName(),
      upstreams: byName(),
      dbWait: {},
      dbWaitSumMs: 0,
      oldestMs: 0,
      generation: null,
    },
    grown: 0,
    flushes: 0,
    processes: new Set(),
    reporting: new Set(),
    inFlightSum: 0,
    poolSum: 0,
    poolFlushes: 0,
    broken: undefined,
  };
}

/**
 * Adds what a second gained since `before`. Counts only grow; if one shrank, the second was lost (a flush of
 * Redis, an eviction) and began anew, so all it holds now is new.
 */
export function addSecond(delta: Delta, before: SecondFields | undefined, now: SecondFields): void {
  const value = (fields: SecondFields | undefined, field: string) => Number(fields?.[field] ?? 0);
  const lost =
    before !== undefined &&
    Object.keys(before).some((field) => value(now, field) < value(before, field));
  for (const [field, text] of Object.entries(now)) {
    const count = Number(text) - (lost ? 0 : value(before, field));
    if (!Number.isSafeInteger(count) || count < 0) delta.broken ??= field;
    else if (count > 0) {
      delta.grown += 1;
      addField(delta, field, count);
    }
  }
}

function addField(delta: Delta, field: string, count: number): void {
  const { counts } = delta;
  const [kind, name = '', code = ''] = field.split(':');
  switch (kind) {
    case 'n':
      delta.flushes += count;
      return;
    case 'p':
      delta.processes.add(name);
      return;
    case 'pr':
      delta.reporting.add(name);
      return;
    case 'off':
      counts.offered += count;
      return;
    case 'adm':
      counts.admitted += count;
      return;
    case 'd':
      increase(counts.denied, name, count);
      return;
    case 'sd':
      increase(counts.wouldDeny, name, count);
      return;
    case 'ok':
      counts.ok += count;
      return;
    case 'to':
      counts.timedOut += count;
      counts.failed += count;
      return;
    case 'err':
      counts.failed += count;
      return;
    case 'can':
      counts.cancelled += count;
      return;
    case 'l':
      increase(counts.latency, name, count);
      return;
    case 'lf':
      increase(counts.failedLatency, name, count);
      return;
    case 'ls':
      counts.latencySumMs += count / 1000;
      return;
    case 'w':
      increase(counts.dbWait, name, count);
      return;
    case 'ws':
      counts.dbWaitSumMs += count / 1000;
      return;
    case 'c':
      increase(counts.codes, name, count);
      return;
    case 'uo':
      upstream(delta, name).ok += count;
      return;
    case 'ue':
      upstream(delta, name).failed += count;
      return;
    case 'uc':
      increase(upstream(delta, name).codes, code, count);
      return;
    case 'pw':
      delta.poolSum += count;
      return;
    case 'pn':
      delta.poolFlushes += count;
      return;
    case 'inf':
      delta.inFlightSum += count;
      return;
    case 'o':
      counts.oldestMs = Math.max(counts.oldestMs, binValue(Number(name)));
      return;
    case 'go':
    case 'ge':
    case 'gc':
      addGeneration(delta, kind, Number(name), code, count);
      return;
    // A newer SDK may report what this daemon does not know.
  }
}

/** Only the newest generation counts: outcomes of an older one began before the last trip. */
function addGeneration(delta: Delta, kind: string, id: number, code: string, count: number): void {
  const { counts } = delta;
  if (!Number.isSafeInteger(id)) return;
  if (counts.generation !== null && id < counts.generation.id) return;
  if (counts.generation === null || id > counts.generation.id) {
    counts.generation = { id, ok: 0, failed: 0, codes: byName() };
  }
  if (kind === 'go') counts.generation.ok += count;
  else if (kind === 'ge') counts.generation.failed += count;
  else increase(counts.generation.codes, code, count);
}

function upstream(delta: Delta, name: string) {
  delta.counts.upstreams[name] ??= { ok: 0, failed: 0, codes: byName() };
  return delta.counts.upstreams[name];
}

function increase(counts: Record<string, number>, name: string, count: number): void {
  counts[name] = (counts[name] ?? 0) + count;
}
