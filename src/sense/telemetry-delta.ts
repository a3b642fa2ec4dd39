/** Fields of telemetry seconds, as counts since the last look, → one telemetry reading. Pure. Stage: sense. */
import { binValue } from '../histogram.js';
import type { TelemetryReading } from './readings.js';
import { SKEW_HOLD_MS } from './skew.js';

/** What a second holds: fields and counts in turn, in the order of Redis. */
export type SecondFields = readonly string[];

/** Sums of one interval, before gauges are divided by the flushes that gave them. */
export interface Delta {
  counts: Omit<
    Required<TelemetryReading>,
    | 'kind'
    | 'fromMs'
    | 'toMs'
    | 'processes'
    | 'reporting'
    | 'poolWaiting'
    | 'inFlight'
    | 'clockSkewMs'
    | 'clocksFar'
  >;
  /** Fields that grew. */
  grown: number;
  flushes: number;
  /** Processes that flushed, and those of them that report completions. */
  processes: Set<string>;
  reporting: Set<string>;
  /** Of the process whose clock is furthest off: Redis's − its own, ms; and flushes of processes off by minutes. */
  clockSkewMs: number;
  farFlushes: number;
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
      routes: byName(),
      dbWait: {},
      dbWaitSumMs: 0,
      oldestMs: 0,
      fallback: 0,
      slowDecisions: 0,
      generation: null,
    },
    grown: 0,
    flushes: 0,
    processes: new Set(),
    reporting: new Set(),
    clockSkewMs: 0,
    farFlushes: 0,
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
  const since = before === undefined ? NOTHING : alongside(before, now);
  for (let i = 0; i + 1 < now.length; i += 2) {
    const earlier = since[i];
    if (earlier === now[i + 1]) continue;
    const count = Number(now[i + 1]) - Number(earlier ?? 0);
    if (!Number.isSafeInteger(count) || count < 0) delta.broken ??= now[i];
    else if (count > 0) {
      delta.grown += 1;
      addField(delta, partsOf(now[i]!), count);
    }
  }
}

const NOTHING: (string | undefined)[] = [];

/** For each field of `now` its count of before, at the same place; of a second that was lost, nothing. */
function alongside(before: SecondFields, now: SecondFields): (string | undefined)[] {
  const counts: (string | undefined)[] = new Array(now.length);
  let byName: Map<string, string> | null = null;
  let met = 0;
  for (let i = 0; i + 1 < now.length; i += 2) {
    let earlier: string | undefined;
    // Redis mostly keeps the order, and adds what is new at the end.
    if (byName === null && (i >= before.length || before[i] === now[i])) earlier = before[i + 1];
    else {
      byName ??= pairsOf(before);
      earlier = byName.get(now[i]!);
    }
    if (earlier === undefined) continue;
    met += 1;
    if (earlier !== now[i + 1] && Number(now[i + 1]) < Number(earlier)) return NOTHING;
    counts[i] = earlier;
  }
  return met < before.length >> 1 ? NOTHING : counts;
}

function pairsOf(fields: SecondFields): Map<string, string> {
  const pairs = new Map<string, string>();
  for (let i = 0; i + 1 < fields.length; i += 2) pairs.set(fields[i]!, fields[i + 1]!);
  return pairs;
}

/** `gc:4:SYSTEMERROR` in its parts. */
interface Parts {
  kind: string;
  name: string;
  code: string;
}

/** Short names come again with every flush: bins, totals. */
const SHORT = 8;
const MOST_KNOWN = 20_000;
const known = new Map<string, Parts>();

function partsOf(field: string): Parts {
  if (field.length > SHORT) return split(field);
  let parts = known.get(field);
  if (parts === undefined) {
    parts = split(field);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(field, parts);
  }
  return parts;
}

function split(field: string): Parts {
  const [kind = '', name = '', code = ''] = field.split(':');
  return { kind, name, code };
}

function addField(delta: Delta, { kind, name, code }: Parts, count: number): void {
  const { counts } = delta;
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
    case 'fb':
      counts.fallback += count;
      return;
    case 'sl':
      counts.slowDecisions += count;
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
    case 'rn':
      route(delta, name).n += count;
      return;
    case 'rs':
      route(delta, name).sumMs += count / 1000;
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
    case 'k':
      addSkew(delta, Number(name) * 1000, count);
      return;
    case 'go':
    case 'ge':
    case 'gc':
      addGeneration(delta, kind, Number(name), code, count);
      return;
    // A newer SDK may report what this daemon does not know.
  }
}

function addSkew(delta: Delta, skewMs: number, flushes: number): void {
  if (!Number.isSafeInteger(skewMs)) return;
  if (Math.abs(skewMs) > Math.abs(delta.clockSkewMs)) delta.clockSkewMs = skewMs;
  if (Math.abs(skewMs) > SKEW_HOLD_MS) delta.farFlushes += flushes;
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

function route(delta: Delta, name: string) {
  delta.counts.routes[name] ??= { n: 0, sumMs: 0 };
  return delta.counts.routes[name];
}

function increase(counts: Record<string, number>, name: string, count: number): void {
  counts[name] = (counts[name] ?? 0) + count;
}
