/** What the runs of schedules measure, beside whether they pass: times to trip, to recover, without an owner. */
import { storedMs } from '../../src/redis/stream-id.js';
import {
  allEntries,
  type FaultSpan,
  type LimiterRecord,
  type RunRecord,
} from '../support/fault-record.js';
import { ceilingOf, givenBy, openSpans } from './fault-buckets.js';
import { countsOf } from './fault-decisions.js';

export const FIGURES = {
  tripMs: 'time to trip: from the first failure of the upstream to the entry of the trip',
  recoverMs: 'time to recover: from the first good answer of the upstream to closed',
  whileOpen: 'admitted while open, by all services together, a trip',
  ownerlessMs: 'time without an owner: from kill -9 of the leader to another lease',
  extra: 'extra admitted after a failover: beyond what the rate has paid since',
} as const;

export type Figures = Record<keyof typeof FIGURES, number[]>;

export function noFigures(): Figures {
  return { tripMs: [], recoverMs: [], whileOpen: [], ownerlessMs: [], extra: [] };
}

/** Of the limiter that moves: only what no other fault of Redis disturbs is counted. */
export function figuresOf(record: RunRecord): Figures {
  const figures = noFigures();
  const [limiter] = record.limiters;
  if (limiter === undefined) return figures;
  for (const fault of record.faults) {
    const alone = !record.faults.some((other) => other !== fault && meets(other, fault));
    if (fault.name === 'upstream fails' && alone) addBreaker(limiter, fault, figures);
    if (fault.name === 'leader killed' && alone) addOwnerless(limiter, fault, figures);
    if (fault.name.startsWith('failover')) addExtra(limiter, fault, record, figures);
  }
  for (const { fromMs, toMs } of openSpans(limiter)) {
    if (record.faults.some((fault) => fault.loses && meets(fault, { ...fault, fromMs, toMs }))) {
      continue;
    }
    const given = givenBy(limiter).reduce(
      (sum, { atMs, tokens, drawn }) =>
        sum + (!drawn && atMs > fromMs + 1 && atMs < toMs - 1 ? tokens : 0),
      0,
    );
    // What had been drawn before: whole lines of the log within the time.
    const drawn = limiter.lines
      .filter((line) => line.fromMs >= fromMs && line.atMs <= toMs)
      .flatMap(countsOf)
      .reduce((sum, { allowed, source, n }) => sum + (allowed && source === 'block' ? n : 0), 0);
    figures.whileOpen.push(given + drawn);
  }
  return figures;
}

const AFTERMATH_MS = 1_000;

function meets(a: FaultSpan, b: FaultSpan): boolean {
  const end = ({ toMs }: FaultSpan) => (toMs ?? Number.POSITIVE_INFINITY) + AFTERMATH_MS;
  return a.fromMs <= end(b) && b.fromMs <= end(a);
}

function addBreaker(limiter: LimiterRecord, fault: FaultSpan, figures: Figures): void {
  const changes = allEntries(limiter).filter(({ kind }) => kind === 'change');
  const trip = changes.find(
    ({ body, id }) => body.reason === 'breaker_trip' && storedMs({ id }) > fault.fromMs,
  );
  if (trip === undefined || fault.toMs === null) return;
  figures.tripMs.push(Math.round(storedMs(trip) - fault.fromMs));
  const healed = fault.toMs;
  const closed = changes.find(
    (entry) =>
      storedMs(entry) > healed &&
      entry.body.after?.state === 'closed' &&
      entry.body.before?.state !== 'closed',
  );
  if (closed) figures.recoverMs.push(Math.round(storedMs(closed) - healed));
}

function addOwnerless(limiter: LimiterRecord, fault: FaultSpan, figures: Figures): void {
  const before = limiter.leases.findLast(({ atMs }) => atMs < fault.fromMs);
  const next = limiter.leases.find(
    ({ atMs, owner }) => atMs > fault.fromMs && owner !== null && owner !== before?.owner,
  );
  if (before?.owner && next) figures.ownerlessMs.push(Math.round(next.atMs - fault.fromMs));
}

function addExtra(
  limiter: LimiterRecord,
  fault: FaultSpan,
  record: RunRecord,
  figures: Figures,
): void {
  // By the rates that the entries show, not the highest that is possible while a failover is on.
  const ceiling = ceilingOf(limiter, [], record.own);
  const from = fault.toMs ?? fault.fromMs;
  const rows = givenBy(limiter).filter(({ atMs }) => atMs >= from - 200 && atMs <= from + 2_000);
  const first = rows[0];
  if (first === undefined) return;
  let n = 0;
  let most = 0;
  for (const { atMs, tokens } of rows) {
    n += tokens;
    most = Math.max(most, n - ceiling.paid(first.atMs, atMs));
  }
  figures.extra.push(Math.round(most));
}
