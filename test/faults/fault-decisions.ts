/** What services' own logs must show after any faults: buckets of one process, deadlines, revisions, shadow. */
import { isOlder } from '../../src/redis/write-order.js';
import {
  allEntries,
  type LimiterRecord,
  type RunRecord,
  type ServiceLine,
} from '../support/fault-record.js';
import type { Checked } from './checker.js';

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

/** I5, of what one process decides by itself: its part, and a fifth more. */
export function checkLocal(limiter: LimiterRecord, record: RunRecord): Checked {
  const set = allEntries(limiter).flatMap(({ body }) => body.after ?? []);
  const capacity = Math.max(record.own.capacity, ...set.map((each) => each.capacity));
  const highest = Math.max(record.own.rate, ...set.map(({ rate }) => rate));
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
      // A stop in the midst of a take is seen by the beat after it: that may be in the next line.
      const near = lines.filter(({ atMs, fromMs }) => atMs > sinceMs && fromMs <= line.atMs);
      const lag = near.reduce((sum, { lagMs }) => sum + lagMs, 0);
      // Delays of a few ms each are not in the lag; what has no deadline takes far longer than this.
      const most = record.deadlineMs + 100 + 2 * lag;
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
