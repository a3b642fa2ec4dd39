/** Fields of telemetry seconds, as counts since the last look, → one telemetry reading. Pure. Stage: sense. */
import { binValue } from '../histogram.js';
import { CODE_BYTES, codeOf, FIELD } from '../redis/telemetry-fields.js';
import { byName, type Delta } from './delta.js';
import { binIn, gainsOf, nameIn, type SecondLines } from './second-lines.js';
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
    if (!addBin(delta, now, start, end, count)) addNamed(delta, now, start, end, count);
  }
}

/** First characters of the fields of bins: `l:212`, `lf:212`, `w:70`, `e:33`. */
const L = 108;
const F = 102;
const W = 119;
const E = 101;
const COLON = 58;

/** Most fields are bins: they are counted without a text of their own. */
function addBin(
  delta: Delta,
  lines: SecondLines,
  from: number,
  to: number,
  count: number,
): boolean {
  const kind = lines[from];
  const failed = kind === L && lines[from + 1] === F;
  const colon = failed ? from + 2 : from + 1;
  if (lines[colon] !== COLON) return false;
  const bins = binsOf(delta, kind, failed);
  if (bins === null) return false;
  const bin = binIn(lines, colon + 1, to);
  if (!Number.isNaN(bin)) bins.push(bin, count);
  return true;
}

function binsOf({ counts }: Delta, kind: number | undefined, failed: boolean): number[] | null {
  if (kind === L) return failed ? counts.failedLatency : counts.latency;
  return kind === W ? counts.dbWait : kind === E ? counts.loopDelay : null;
}

/** Fields without a name, by their code. */
const PLAIN = new Map(
  Object.values(FIELD)
    .filter((field) => typeof field === 'string' && field.length <= CODE_BYTES)
    .map((field) => [codeOf(Buffer.from(field as string), 0, field.length), field as string]),
);

/** `uc:pay:E1` is kind, name and code. */
function addNamed(delta: Delta, lines: SecondLines, from: number, to: number, count: number): void {
  if (to - from <= CODE_BYTES) {
    const plain = PLAIN.get(codeOf(lines, from, to));
    if (plain !== undefined) {
      addField(delta, plain, '', '', count);
      return;
    }
  }
  const field = nameIn(lines, from, to);
  const parts = field.includes(':') ? field.split(':') : [field];
  addField(delta, parts[0]!, parts[1] ?? '', parts[2] ?? '', count);
}

function addField(delta: Delta, kind: string, name: string, code: string, count: number): void {
  const { counts } = delta;
  switch (kind) {
    case 'n':
      delta.flushes += count;
      return;
    case 'p':
      delta.processes.add(name);
      delta.processSeconds += 1;
      return;
    case 'pr':
      delta.reporting.add(name);
      delta.reportingSeconds += 1;
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
    case 'ov':
      counts.overflow += count;
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
    case 'ls':
      counts.latencySumMs += count / 1000;
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
    case 'vn':
      delta.vitals += count;
      return;
    case 'vc':
      delta.cpuSum += count;
      return;
    case 'vm':
      delta.memorySum += count;
      return;
    case 'es':
      counts.loopDelaySumMs += count / 1000;
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
