/** What services' own logs must show after any faults: buckets, the breaker, deadlines, shadow. */
import { boundsOf } from '../../src/decide/bounds.js';
import { isOlder } from '../../src/redis/write-order.js';
import {
  allEntries,
  type FaultSpan,
  type LimiterRecord,
  type RunRecord,
  type ServiceLine,
  storedMs,
} from '../support/fault-record.js';
import type { Checked } from './checker.js';
import { policiesOf } from './fault-entries.js';

/** A block that was drawn before a change is used no longer than this. */
const BLOCK_MS = 250;
/** Between Redis's decision and its line in a log, beside what the process itself measured. */
const LOGGED_MS = 20;

export interface Count {
  allowed: boolean;
  wouldAllow: boolean;
  reason: string;
  source: string;
  epoch: number;
  revision: number;
  state: string;
  n: number;
}

export function countsOf(line: ServiceLine): Count[] {
  return Object.entries(line.counts).map(([key, n]) => {
    const [allowed, would, reason = '', source = '', epoch, revision, state = ''] = key.split('|');
    return {
      ...{ allowed: allowed === '1', wouldAllow: would === '1', reason, source, state, n },
      ...{ epoch: Number(epoch), revision: Number(revision) },
    };
  });
}

/** Those that Redis admitted, by its buckets; `block` from tokens that it gave. */
export const BY_REDIS = new Set(['redis', 'block', 'unmanaged']);

export function admitted(lines: readonly ServiceLine[], sources: ReadonlySet<string>) {
  return lines
    .map((line) => ({
      fromMs: line.fromMs - line.maxMs - LOGGED_MS,
      toMs: line.atMs,
      n: countsOf(line).reduce((sum, c) => sum + (c.allowed && sources.has(c.source) ? c.n : 0), 0),
    }))
    .filter(({ n }) => n > 0)
    .sort((a, b) => a.fromMs - b.fromMs);
}

/** The highest rate and capacity that can have been in force, as steps in time. */
export interface Ceiling {
  rateAt(ms: number): number;
  capacity: number;
  /** From here on Redis knew less than before: at most one capacity comes anew. */
  resets: number[];
  /** ∫ of the highest rate from one moment to another, in tokens. */
  paid(fromMs: number, toMs: number): number;
}

const STEP_MS = 10;

export function ceilingOf(
  limiter: LimiterRecord,
  faults: readonly FaultSpan[],
  own: { rate: number; capacity: number },
): Ceiling {
  const policyOf = policiesOf(limiter);
  const changes = allEntries(limiter).filter(({ kind, body }) => kind === 'change' && body.after);
  let capacity = own.capacity;
  let highest = own.rate;
  const steps = changes.map((entry) => {
    const { after, policyHash } = entry.body;
    const policy = policyOf(policyHash);
    capacity = Math.max(capacity, after!.capacity);
    highest = Math.max(highest, after!.rate);
    const safe = policy?.whenLost.rate ?? policy?.limiter.rate ?? after!.rate;
    const stopped = after!.state === 'open' || after!.state === 'half-open';
    const probe = policy === null ? after!.rate : boundsOf(policy).probeRate;
    return { atMs: storedMs(entry), rate: stopped ? probe : after!.rate, safe };
  });
  const lossy = faults
    .filter(({ loses }) => loses)
    .map(({ fromMs, toMs }) => {
      // Until a daemon has written again nobody knows what was in force.
      const end = toMs ?? Number.POSITIVE_INFINITY;
      const mended = steps.find(({ atMs }) => atMs > end)?.atMs ?? Number.POSITIVE_INFINITY;
      return { fromMs, toMs: mended };
    });
  const unled = gaps(limiter);
  const rateAt = (ms: number): number => {
    if (lossy.some(({ fromMs, toMs }) => ms >= fromMs && ms <= toMs)) return highest;
    const step = steps.findLast(({ atMs }) => atMs <= ms);
    if (step === undefined) return highest;
    const gliding = unled.some(({ fromMs, toMs }) => ms >= fromMs && ms <= toMs);
    return gliding ? Math.max(step.rate, step.safe) : step.rate;
  };
  return {
    rateAt,
    capacity,
    resets: lossy.map(({ fromMs }) => fromMs),
    paid(fromMs, toMs) {
      let sum = 0;
      for (let ms = fromMs; ms < toMs; ms += STEP_MS) {
        // Both ends of a step: entries carry whole milliseconds.
        const rate = Math.max(rateAt(ms - 1), rateAt(ms + STEP_MS));
        sum += (rate * Math.min(STEP_MS, toMs - ms)) / 1000;
      }
      return sum;
    },
  };
}

/** When nobody held the lease for long enough that the limits may have begun to glide. */
function gaps({ leases }: LimiterRecord): { fromMs: number; toMs: number }[] {
  const found: { fromMs: number; toMs: number }[] = [];
  let since: number | null = null;
  for (const { owner, atMs } of leases) {
    if (owner !== null) {
      if (since !== null) found.push({ fromMs: since, toMs: atMs + 500 });
      since = null;
    } else since ??= atMs;
  }
  if (since !== null) found.push({ fromMs: since, toMs: Number.POSITIVE_INFINITY });
  return found;
}

/** I5: in no time more than capacity + ∫ rate was admitted, by Redis's buckets and by each process's own. */
export function checkBuckets(limiter: LimiterRecord, record: RunRecord): Checked {
  const ceiling = ceilingOf(limiter, record.faults, record.own);
  const violations: string[] = [];
  const rows = admitted(limiter.lines, BY_REDIS);
  const drawn = limiter.lines.some((line) =>
    countsOf(line).some(({ source }) => source === 'block'),
  );
  // A line tells what was heard: Redis may have decided up to a deadline before, and a block's draw earlier still.
  const earlier = record.deadlineMs + (drawn ? BLOCK_MS : 0);
  let checked = 0;
  for (const [i, first] of rows.entries()) {
    let n = 0;
    let toMs = first.toMs;
    let paid = ceiling.paid(first.fromMs - earlier, toMs);
    for (const row of rows.slice(i)) {
      if (row.toMs > toMs) {
        paid += ceiling.paid(toMs, row.toMs);
        toMs = row.toMs;
      }
      n += row.n;
      checked += 1;
      const again = ceiling.resets.filter((ms) => ms >= first.fromMs - 200 && ms <= toMs).length;
      // What blocks held at the beginning passes beyond it, at most the capacity.
      const most = ceiling.capacity * (1 + again + (drawn ? 1 : 0)) + paid + 1;
      if (n <= most) continue;
      violations.push(
        `${n} admitted from ${iso(first.fromMs)} to ${iso(toMs)}, at most ${most.toFixed(1)} (capacity ${ceiling.capacity}, paid ${paid.toFixed(1)}, ${again} losses)`,
      );
      break;
    }
  }
  return { checked, violations: violations.slice(0, 3) };
}

/** The same of what one process decides by itself: its part, and a fifth more. */
export function checkLocal(limiter: LimiterRecord, record: RunRecord): Checked {
  const { capacity } = ceilingOf(limiter, record.faults, record.own);
  const highest = Math.max(
    record.own.rate,
    ...allEntries(limiter).map(({ body }) => body.after?.rate ?? 0),
  );
  const violations: string[] = [];
  let checked = 0;
  for (const [service, lines] of byService(limiter)) {
    const rows = lines.map((line) => ({
      ...line,
      n: countsOf(line).reduce((sum, c) => sum + (c.allowed && c.source === 'local' ? c.n : 0), 0),
    }));
    for (let i = 0; i < rows.length; i++) {
      if (rows[i]!.n === 0) continue;
      let n = 0;
      // Who came or went a moment ago may not be counted yet.
      let processes = Math.min(
        ...rows.slice(Math.max(0, i - 3), i + 1).map((r) => Math.max(1, r.processes)),
      );
      for (const row of rows.slice(i)) {
        n += row.n;
        processes = Math.min(processes, Math.max(1, row.processes));
        checked += 1;
        const seconds = (row.atMs - rows[i]!.fromMs + rows[i]!.maxMs + LOGGED_MS) / 1000;
        const part = Math.min(1, 1.2 / processes);
        const most = Math.max(1, capacity * part) + ((highest * 1.2) / processes) * seconds + 1;
        if (n <= most) continue;
        violations.push(
          `${service} admitted ${n} by itself in ${seconds.toFixed(2)} s, at most ${most.toFixed(1)} as one of ${processes}`,
        );
        break;
      }
    }
  }
  return { checked, violations: violations.slice(0, 3) };
}

export interface OpenSpan {
  fromMs: number;
  /** The next entry, or the end of the open time if that comes first. */
  toMs: number;
  openForMs: number;
  reason: string;
}

/** From each trip to the end of its open time. */
export function openSpans(limiter: LimiterRecord): OpenSpan[] {
  const policyOf = policiesOf(limiter);
  const changes = limiter.segments.flatMap(({ entries }) =>
    entries.filter(({ kind, body }) => kind === 'change' && body.after !== null),
  );
  const spans = new Map<string, OpenSpan>();
  for (const [i, entry] of changes.entries()) {
    const { before, after, reason, policyHash, actor } = entry.body;
    const openFor = policyOf(policyHash)?.breaker?.openFor;
    if (after!.state !== 'open' || before?.state === 'open' || openFor === undefined) continue;
    if (actor.kind === 'person') continue;
    const next = changes.slice(i + 1).find(({ body }) => body.after!.state !== 'open');
    const fromMs = storedMs(entry);
    const toMs = Math.min(fromMs + openFor, next ? storedMs(next) : Number.POSITIVE_INFINITY);
    spans.set(entry.hash, { fromMs, toMs, openForMs: openFor, reason });
  }
  return [...spans.values()];
}

/** I6: open admits nothing; what follows begins with empty buckets; it ends closed, probing, or open for a time. */
export function checkBreaker(limiter: LimiterRecord, record: RunRecord): Checked {
  const violations: string[] = [];
  const spans = openSpans(limiter).filter(
    ({ fromMs, toMs }) => !record.faults.some((f) => f.loses && meets(f, fromMs - 1000, toMs)),
  );
  const ceiling = ceilingOf(limiter, record.faults, record.own);
  let checked = 0;
  const lines = [...limiter.lines].sort((a, b) => a.atMs - b.atMs);
  for (const span of spans) {
    for (const line of lines) {
      const drawn = countsOf(line).some(({ source }) => source === 'block') ? BLOCK_MS : 0;
      const fromMs = line.fromMs - line.maxMs - LOGGED_MS;
      if (fromMs < span.fromMs + drawn || line.atMs > span.toMs) continue;
      checked += 1;
      const n = countOf(line);
      if (n > 0) {
        violations.push(
          `${line.service} admitted ${n} from ${iso(line.fromMs)} to ${iso(line.atMs)}, open since ${iso(span.fromMs)}`,
        );
      }
    }
    // From the end of the open time on, everything that passes has been paid for since.
    const endMs = span.toMs + 2_000;
    if (record.faults.some((fault) => fault.loses && meets(fault, span.toMs, endMs))) continue;
    let n = 0;
    for (const line of lines) {
      if (line.fromMs - line.maxMs - LOGGED_MS < span.toMs || line.atMs > endMs) continue;
      n += countOf(line);
      checked += 1;
      const most = 1 + ceiling.paid(span.toMs, line.atMs) + 1;
      if (n <= most) continue;
      violations.push(
        `${n} admitted from ${iso(span.toMs)} to ${iso(line.atMs)}, after a trip at ${iso(span.fromMs)}: at most ${most.toFixed(1)} was paid`,
      );
      break;
    }
  }
  const end = limiter.end;
  if (end !== null) {
    checked += 1;
    const { state, openUntil } = end.params;
    if (end.effective.state === 'open' && openUntil === -1) {
      violations.push(`it ends ${state} until a person ends it, though none opened it`);
    }
  }
  return { checked, violations: violations.slice(0, 5) };
}

function countOf(line: ServiceLine): number {
  return countsOf(line).reduce(
    (sum, c) => sum + (c.allowed && BY_REDIS.has(c.source) ? c.n : 0),
    0,
  );
}

function meets({ fromMs, toMs }: FaultSpan, from: number, to: number): boolean {
  return fromMs <= to && (toMs ?? Number.POSITIVE_INFINITY) >= from;
}

/** I8: each decision within its deadline, as late as the process's own loop was; by the source that the policy names. */
export function checkDeadlines(limiter: LimiterRecord, record: RunRecord): Checked {
  // In shadow and off all are admitted without Redis as with it.
  const mode = limiter.end?.params.mode;
  const admitsAll = record.onRedisError === 'open' || mode === 'shadow' || mode === 'off';
  const violations: string[] = [];
  let checked = 0;
  for (const [service, lines] of byService(limiter)) {
    for (const line of lines) {
      const counts = countsOf(line);
      checked += counts.reduce((sum, { n }) => sum + n, 0);
      const sinceMs = line.fromMs - line.maxMs - 100;
      const near = lines.filter(({ atMs, fromMs }) => atMs > sinceMs && fromMs < line.atMs);
      const lag = near.reduce((sum, { lagMs }) => sum + lagMs, 0);
      const most = record.deadlineMs + 50 + 1.5 * lag;
      if (line.maxMs > most) {
        violations.push(
          `${service} took ${line.maxMs.toFixed(0)} ms at ${iso(line.atMs)}, at most ${most.toFixed(0)} (its loop stood still for ${lag.toFixed(0)} ms)`,
        );
      }
      const strange = counts.find(
        ({ source, allowed }) =>
          (source === 'open' && !admitsAll) || (source === 'closed' && allowed),
      );
      if (strange) violations.push(`${service} decided by ${strange.source} at ${iso(line.atMs)}`);
    }
  }
  return { checked, violations: violations.slice(0, 5) };
}

/** I2, of decisions: what Redis decided by has an entry, of this limiter and no other. */
export function checkRevisions(limiter: LimiterRecord, record: RunRecord): Checked {
  // Revisions that a server took with it before anybody read them.
  if (record.faults.some(({ loses }) => loses)) return { checked: 0, violations: [] };
  const entries = allEntries(limiter);
  const last = entries.at(-1);
  const known = new Set(entries.map(({ epoch, revision }) => `${epoch}/${revision}`));
  const violations: string[] = [];
  let checked = 0;
  for (const line of limiter.lines) {
    for (const { source, epoch, revision, n } of countsOf(line)) {
      if (source !== 'redis' && source !== 'block') continue;
      checked += n;
      // Written after the log was read for the last time.
      if (last !== undefined && isOlder(last, { epoch, revision })) continue;
      if (revision === 0 || known.has(`${epoch}/${revision}`)) continue;
      violations.push(
        `${line.service} decided ${n} by revision ${epoch}/${revision} at ${iso(line.atMs)}, which has no entry`,
      );
    }
  }
  return { checked, violations: violations.slice(0, 3) };
}

/** I12: what is in shadow admits all, whatever the fault. */
export function checkShadow(limiter: LimiterRecord): Checked {
  const violations: string[] = [];
  let checked = 0;
  for (const line of limiter.lines) {
    for (const count of countsOf(line)) {
      // Who has not met Redis yet cannot know that it is in shadow.
      if (count.revision === 0) continue;
      checked += count.n;
      if (!count.allowed) {
        violations.push(
          `${line.service} denied ${count.n} by ${count.reason} at ${iso(line.atMs)}`,
        );
      }
    }
  }
  return { checked, violations: violations.slice(0, 5) };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

function byService({ lines }: LimiterRecord): Map<string, ServiceLine[]> {
  const found = new Map<string, ServiceLine[]>();
  for (const line of lines) found.set(line.service, [...(found.get(line.service) ?? []), line]);
  return found;
}
