/** Fields of telemetry seconds, as counts since the last look, → one telemetry reading. Pure. Stage: sense. */
import { type BinSums, binValue, sumBin } from '../histogram.js';
import { byName, type Delta, type DeltaBins } from './delta.js';
import { createFieldNames } from './field-names.js';
import { binIn, gainsOf, type SecondLines } from './second-lines.js';
import { SKEW_HOLD_MS } from './skew.js';

/** Adds what a second gained since `before`. */
export function addSecond(delta: Delta, before: SecondLines | undefined, now: SecondLines): void {
  const { size, from, to, by, broken } = gainsOf(before, now);
  delta.broken ??= broken;
  delta.grown += size;
  for (let i = 0; i < size; i++) {
    const start = from[i]!;
    const end = to[i]!;
    const count = by[i]!;
    if (addBin(delta, now, start, end, count)) continue;
    const field = meaningOf(now, start, end);
    field?.add(delta, count, field.name, field.code);
  }
}

/** First characters of the fields of bins: `l:212`, `lf:212`, `w:70`, `e:33`. */
const L = 108;
const F = 102;
const W = 119;
const E = 101;
const COLON = 58;

/** Most fields are bins: they are counted without a look at their names. */
function addBin(
  { bins }: Delta,
  lines: SecondLines,
  from: number,
  to: number,
  count: number,
): boolean {
  const kind = lines[from];
  const failed = kind === L && lines[from + 1] === F;
  const colon = failed ? from + 2 : from + 1;
  if (lines[colon] !== COLON) return false;
  const sums = sumsOf(bins, kind, failed);
  if (sums === null) return false;
  sumBin(sums, binIn(lines, colon + 1, to), count);
  return true;
}

function sumsOf(bins: DeltaBins, kind: number | undefined, failed: boolean): BinSums | null {
  if (kind === L) return failed ? bins.failedLatency : bins.latency;
  return kind === W ? bins.dbWait : kind === E ? bins.loopDelay : null;
}

type Add = (delta: Delta, count: number, name: string, code: string) => void;

/** What a field adds to, by its kind. */
const ADD: Readonly<Record<string, Add>> = {
  n: (delta, count) => {
    delta.flushes += count;
  },
  p: (delta, _count, name) => {
    delta.processes.add(name);
    delta.processSeconds += 1;
  },
  pr: (delta, _count, name) => {
    delta.reporting.add(name);
    delta.reportingSeconds += 1;
  },
  off: (delta, count) => {
    delta.counts.offered += count;
  },
  fb: (delta, count) => {
    delta.counts.fallback += count;
  },
  sl: (delta, count) => {
    delta.counts.slowDecisions += count;
  },
  ov: (delta, count) => {
    delta.counts.overflow += count;
  },
  adm: (delta, count) => {
    delta.counts.admitted += count;
  },
  d: (delta, count, name) => {
    increase(delta.counts.denied, name, count);
  },
  sd: (delta, count, name) => {
    increase(delta.counts.wouldDeny, name, count);
  },
  ok: (delta, count) => {
    delta.counts.ok += count;
  },
  to: (delta, count) => {
    delta.counts.timedOut += count;
    delta.counts.failed += count;
  },
  err: (delta, count) => {
    delta.counts.failed += count;
  },
  can: (delta, count) => {
    delta.counts.cancelled += count;
  },
  ls: (delta, count) => {
    delta.counts.latencySumMs += count / 1000;
  },
  ws: (delta, count) => {
    delta.counts.dbWaitSumMs += count / 1000;
  },
  rn: (delta, count, name) => {
    route(delta, name).n += count;
  },
  rs: (delta, count, name) => {
    route(delta, name).sumMs += count / 1000;
  },
  c: (delta, count, name) => {
    increase(delta.counts.codes, name, count);
  },
  uo: (delta, count, name) => {
    upstream(delta, name).ok += count;
  },
  ue: (delta, count, name) => {
    upstream(delta, name).failed += count;
  },
  uc: (delta, count, name, code) => {
    increase(upstream(delta, name).codes, code, count);
  },
  pw: (delta, count) => {
    delta.poolSum += count;
  },
  pn: (delta, count) => {
    delta.poolFlushes += count;
  },
  inf: (delta, count) => {
    delta.inFlightSum += count;
  },
  o: (delta, _count, name) => {
    delta.counts.oldestMs = Math.max(delta.counts.oldestMs, binValue(Number(name)));
  },
  vn: (delta, count) => {
    delta.vitals += count;
  },
  vc: (delta, count) => {
    delta.cpuSum += count;
  },
  vm: (delta, count) => {
    delta.memorySum += count;
  },
  es: (delta, count) => {
    delta.counts.loopDelaySumMs += count / 1000;
  },
  k: (delta, count, name) => {
    addSkew(delta, Number(name) * 1000, count);
  },
  go: (delta, count, name, code) => addGeneration(delta, 'go', Number(name), code, count),
  ge: (delta, count, name, code) => addGeneration(delta, 'ge', Number(name), code, count),
  gc: (delta, count, name, code) => addGeneration(delta, 'gc', Number(name), code, count),
};

/** A newer SDK may report what this daemon does not know. */
const meaningOf = createFieldNames(({ kind, name, code }) =>
  Object.hasOwn(ADD, kind) ? { add: ADD[kind]!, name, code } : null,
);

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
