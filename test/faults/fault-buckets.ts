/** What Redis gave, by its own time, after any faults: buckets, the breaker, and that services admitted no more than that. */
import { boundsOf } from '../../src/decide/bounds.js';
import { storedMs } from '../../src/redis/stream-id.js';
import {
  allEntries,
  type FaultSpan,
  type LimiterRecord,
  type RunRecord,
} from '../support/fault-record.js';
import type { Checked } from './checker.js';
import { countsOf, iso } from './fault-decisions.js';
import { policiesOf } from './fault-entries.js';

/** A block is used no longer than this after it was asked for. */
const BLOCK_MS = 250;
/** Between a fault's begin and end as the test saw them, and as Redis did. */
const NEAR_MS = 200;
/** Of whole tokens and entries of whole milliseconds, and what sums of fractions come to. */
const SLACK = 1 + 1e-6;

/** One answer of Redis: so many tokens at that moment of its own time; fewer than 0 came back. */
export interface Given {
  atMs: number;
  tokens: number;
  /** In force by the same answer. */
  rate: number;
  drawn: boolean;
  pid: number;
  /** On the service's clock. */
  heardMs: number;
}

/** What Redis gave to all services, in its own order. */
export function givenBy({ heard }: LimiterRecord): Given[] {
  return heard
    .flatMap(({ atUs, tokens = 0, rate = 0, drawn = false, back = 0, pid, heardMs }) => {
      if (atUs === undefined) return [];
      const each = { atMs: atUs / 1000, rate, drawn, pid, heardMs };
      // In the order of the script.
      return [-back, tokens].filter((n) => n !== 0).map((n) => ({ ...each, tokens: n }));
    })
    .sort((a, b) => a.atMs - b.atMs);
}

/** Calls whose answer was never heard: from then on so many tokens may have come back. */
function maybeBack({ heard }: LimiterRecord): { fromMs: number; tokens: number }[] {
  const answered = new Set(
    heard.filter((each) => each.maybeBack === undefined).map(({ pid, call }) => `${pid} ${call}`),
  );
  return heard.flatMap(({ pid, call, maybeBack: tokens, heardMs }) =>
    tokens === undefined || answered.has(`${pid} ${call}`) ? [] : [{ fromMs: heardMs, tokens }],
  );
}

/** The highest rate and capacity that can have been in force, as steps in time. */
export interface Ceiling {
  rateAt(ms: number): number;
  capacity: number;
  /** When Redis came to know less than before: in each at most one capacity comes anew. */
  losses: { fromMs: number; toMs: number }[];
  /** ∫ of the highest rate from one moment to another, in tokens. */
  paid(fromMs: number, toMs: number): number;
}

export function ceilingOf(
  limiter: LimiterRecord,
  faults: readonly FaultSpan[],
  own: { rate: number; capacity: number },
): Ceiling {
  const policyOf = policiesOf(limiter);
  const changes = allEntries(limiter).filter(({ kind, body }) => kind === 'change' && body.after);
  const given = givenBy(limiter);
  const capacity = Math.max(own.capacity, ...changes.map(({ body }) => body.after!.capacity));
  const steps = changes
    .map((entry) => {
      const { after, policyHash } = entry.body;
      const policy = policyOf(policyHash);
      const stopped = after!.state === 'open' || after!.state === 'half-open';
      const probe = policy === null ? after!.rate : boundsOf(policy).probeRate;
      return {
        atMs: begunMs(limiter, entry),
        rate: stopped ? probe : after!.rate,
        safe: policy?.whenLost.rate ?? policy?.limiter.rate ?? after!.rate,
      };
    })
    .sort((a, b) => a.atMs - b.atMs);
  const losses = faults.filter(({ loses }) => loses).map((fault) => spanOf(fault));
  const highest = Math.max(own.rate, ...steps.map(({ rate }) => rate));
  const unknown = losses.map(({ fromMs, toMs }) => {
    // What was written after the last look before it, and what is in force until a daemon has written again.
    const seenMs = limiter.looks.findLast(({ atMs }) => atMs < fromMs)?.atMs ?? fromMs;
    const mendedMs = steps.find(({ atMs }) => atMs > toMs)?.atMs ?? Number.POSITIVE_INFINITY;
    const rates = given
      .filter(({ atMs }) => atMs >= seenMs && atMs <= mendedMs)
      .map(({ rate }) => rate);
    return { fromMs: seenMs, toMs: mendedMs, rate: Math.max(highest, ...rates) };
  });
  const glides = glidesOf(limiter);
  const within = (ms: number) => (span: { fromMs: number; toMs: number }) =>
    ms >= span.fromMs && ms <= span.toMs;
  const rateAt = (ms: number): number => {
    const lost = unknown.find(within(ms));
    if (lost) return lost.rate;
    const step = steps.findLast(({ atMs }) => atMs <= ms);
    // Before the first entry the services' own numbers rule.
    if (step === undefined) return own.rate;
    return glides.some(within(ms)) ? Math.max(step.rate, step.safe) : step.rate;
  };
  return {
    rateAt,
    capacity,
    losses,
    paid(fromMs, toMs) {
      let sum = 0;
      for (let ms = fromMs; ms < toMs; ms += 1) {
        // Both sides of a step: entries carry whole milliseconds.
        sum += (Math.max(rateAt(ms - 1), rateAt(ms + 1)) * Math.min(1, toMs - ms)) / 1000;
      }
      return sum;
    },
  };
}

function spanOf({ fromMs, toMs }: FaultSpan) {
  return { fromMs: fromMs - NEAR_MS, toMs: (toMs ?? Number.POSITIVE_INFINITY) + NEAR_MS };
}

/** When an entry's numbers came into force: its id is a moment later if the script was held up. */
function begunMs(
  { looks }: LimiterRecord,
  entry: { id: string; epoch: number; revision: number },
): number {
  const atMs = storedMs(entry);
  // Long before, its number may have been that of a revision which a failover has lost.
  const same = looks.filter(
    (look) =>
      look.epoch === entry.epoch && look.revision === entry.revision && look.atMs >= atMs - NEAR_MS,
  );
  return Math.min(atMs, ...same.map(({ changedAtUs }) => changedAtUs / 1000));
}

/** From the last look before that saw no glide to the first one after it. */
function glidesOf({ looks }: LimiterRecord): { fromMs: number; toMs: number }[] {
  return looks.flatMap(({ gliding }, i) =>
    gliding
      ? [
          {
            fromMs: looks[i - 1]?.atMs ?? Number.NEGATIVE_INFINITY,
            toMs: looks[i + 1]?.atMs ?? Number.POSITIVE_INFINITY,
          },
        ]
      : [],
  );
}

/** I5: in no time more than capacity + ∫ rate was given: a bucket that was full at the beginning is never overdrawn. */
export function checkBuckets(limiter: LimiterRecord, record: RunRecord): Checked {
  const ceiling = ceilingOf(limiter, record.faults, record.own);
  const { capacity } = ceiling;
  const violations: string[] = [];
  const events = givenBy(limiter);
  const losses = ceiling.losses.map((span) => ({ ...span, used: false }));
  const maybe = maybeBack(limiter);
  let level = capacity;
  // Since it was last full.
  let since = { fromMs: events[0]?.atMs ?? 0, given: 0, losses: 0 };
  let lastMs = since.fromMs;
  const refill = (atMs: number) => {
    level = capacity;
    since = { fromMs: atMs, given: 0, losses: 0 };
  };
  for (const { atMs, tokens } of events) {
    level += ceiling.paid(lastMs, atMs);
    lastMs = atMs;
    // What was lost and not needed until then: it may have been lost at the last moment.
    for (const loss of losses.filter(({ used, toMs }) => !used && toMs < atMs)) {
      loss.used = true;
      level = capacity;
    }
    if (level >= capacity) refill(atMs);
    level -= tokens;
    since.given += tokens;
    // As much as may have come back unheard, and is needed.
    for (const back of maybe) {
      if (level >= 0 || back.fromMs > atMs + NEAR_MS) continue;
      const used = Math.min(back.tokens, -level);
      back.tokens -= used;
      since.given -= used;
      level += used;
    }
    if (level >= -SLACK) continue;
    const loss = losses.find(({ used, fromMs }) => !used && fromMs <= atMs);
    if (loss) {
      loss.used = true;
      since.losses += 1;
      level = capacity - tokens;
      continue;
    }
    const paid = ceiling.paid(since.fromMs, atMs);
    violations.push(
      `${since.given} given from ${iso(since.fromMs)} to ${iso(atMs)}, at most ${(capacity * (1 + since.losses) + paid).toFixed(1)} (capacity ${capacity}, paid ${paid.toFixed(1)}, ${since.losses} losses)`,
    );
    refill(atMs);
  }
  const told = checkTold(limiter);
  return {
    checked: events.length + told.checked,
    violations: [...violations, ...told.violations].slice(0, 4),
  };
}

/** No process admits what Redis has not given it: by each take, and from blocks that are young enough. */
function checkTold(limiter: LimiterRecord): Checked {
  const violations: string[] = [];
  const given = givenBy(limiter).filter(({ tokens }) => tokens > 0);
  let checked = 0;
  for (const pid of new Set(limiter.lines.map((line) => line.pid))) {
    const lines = limiter.lines.filter((line) => line.pid === pid).sort((a, b) => a.atMs - b.atMs);
    const own = given.filter((each) => each.pid === pid);
    const sum = (of: typeof own) => of.reduce((all, { tokens }) => all + tokens, 0);
    let admitted = 0;
    for (const line of lines) {
      const by = (...sources: string[]) =>
        countsOf(line).reduce((n, c) => n + (c.allowed && sources.includes(c.source) ? c.n : 0), 0);
      const heard = own.filter(({ heardMs }) => heardMs <= line.atMs);
      const taken = sum(heard.filter(({ drawn }) => !drawn));
      admitted += by('redis', 'unmanaged');
      const blocks = by('block');
      const youngMs = line.fromMs - BLOCK_MS - line.maxMs;
      const young = sum(heard.filter(({ drawn, heardMs }) => drawn && heardMs >= youngMs));
      checked += 1;
      if (admitted > taken) {
        violations.push(
          `${line.service} admitted ${admitted} until ${iso(line.atMs)}, Redis gave it ${taken}`,
        );
        break;
      }
      if (blocks > young) {
        violations.push(
          `${line.service} admitted ${blocks} from blocks until ${iso(line.atMs)}, of ${young} drawn within ${BLOCK_MS} ms`,
        );
      }
    }
  }
  return { checked, violations };
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
    const endMs = begunMs(limiter, entry) + openFor;
    const toMs = Math.min(endMs, next ? begunMs(limiter, next) : Number.POSITIVE_INFINITY);
    spans.set(entry.hash, { fromMs: storedMs(entry), toMs, openForMs: openFor, reason });
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
  const events = givenBy(limiter);
  let checked = 0;
  for (const span of spans) {
    // Of the millisecond of the entry itself nobody knows which came first.
    const open = events.filter(({ atMs }) => atMs >= span.fromMs + 1 && atMs <= span.toMs - 1);
    checked += 1 + open.length;
    const passed = open.reduce((sum, { tokens }) => sum + Math.max(0, tokens), 0);
    if (passed > 0) {
      violations.push(
        `${passed} given from ${iso(open[0]!.atMs)} to ${iso(open.at(-1)!.atMs)}, open since ${iso(span.fromMs)}`,
      );
    }
    // From the end of the open time on, everything that passes has been paid for since.
    const endMs = span.toMs + 2_000;
    if (record.faults.some((fault) => fault.loses && meets(fault, span.toMs, endMs))) continue;
    let n = 0;
    for (const { atMs, tokens } of events) {
      if (atMs < span.toMs || atMs > endMs) continue;
      n += tokens;
      checked += 1;
      const most = ceiling.paid(span.toMs, atMs) + SLACK;
      if (n <= most) continue;
      violations.push(
        `${n} given from ${iso(span.toMs)} to ${iso(atMs)}, after a trip at ${iso(span.fromMs)}: at most ${most.toFixed(1)} was paid`,
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

function meets({ fromMs, toMs }: FaultSpan, from: number, to: number): boolean {
  return fromMs <= to && (toMs ?? Number.POSITIVE_INFINITY) >= from;
}
