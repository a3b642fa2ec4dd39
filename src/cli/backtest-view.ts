/** What `flyball backtest` shows: minutes with their decisions, what is left out, and what none of it can tell. Stage: cli. */
import type { Policy } from '../policy/schema.js';
import type { NoFit } from '../sim/fit.js';
import type { Replayable, Replayed, ReplaySummary } from '../sim/replay.js';
import type { ClosedLoop } from '../sim/replay-closed.js';
import type { CliIo } from './output.js';
import { plantLine } from './simulate-files.js';
import { clean, localTime, number, span } from './text.js';

export interface Backtest {
  file: string;
  policy: Policy;
  source: string;
  able: Replayable;
  replayed: Replayed[];
  summary: ReplaySummary;
  closed?: ClosedLoop | NoFit;
}

export const WARNING =
  'The world would have answered differently: this past was recorded under the limits of its time, and no decision below changed what came next. Read when and why it would have moved, not how the service would have fared.';

/** Minutes shown without --all. */
const MOST_LINES = 40;

export function backtestText(io: CliIo, test: Backtest, all: boolean): void {
  const { policy, file, source, able, replayed, summary } = test;
  const { c } = io;
  const { name } = policy.limiter;
  io.out(
    `${clean(file)} (${name} under ${policy.control.law}) on ${clean(source)}: ` +
      `${summary.minutes} ${evenly(replayed)} from ${localTime(summary.fromMs)} to ${localTime(summary.toMs)}` +
      (summary.missingMs > 0 ? `, ${span(summary.missingMs)} between them without a record` : ''),
  );
  for (const line of leftOutLines(able)) io.out(c.yellow(line));
  io.out(c.yellow(WARNING));
  const lines = all ? replayed : replayed.filter(({ changes }) => changes.length > 0);
  const shown = all ? lines : lines.slice(-MOST_LINES);
  if (shown.length > 0) {
    io.out('');
    io.out(io.table(HEAD, shown.map(cells)));
    if (shown.length < lines.length) {
      io.say(`${lines.length - shown.length} earlier minutes with a decision; --all shows them.`);
    }
  }
  io.out('');
  for (const line of summaryLines(summary)) io.out(line);
  if (test.closed !== undefined) closedText(io, test.closed);
}

function evenly(replayed: readonly Replayed[]): string {
  return replayed.every(({ recorded }) => recorded.spanMs === 60_000) ? 'minutes' : 'stretches';
}

const HEAD = ['time', 'offered', 'ok', 'p95', 'was', 'would be', 'met', 'missed', 'decided'];

function cells({ recorded, state, rate, inFlightMax, binds, missed, changes }: Replayed): string[] {
  const cap = (n: number | null) => (n === null ? '?' : n === 0 ? 'no cap' : number(n));
  const was =
    recorded.rate === null ? '·' : `${number(recorded.rate)}/s, ${cap(recorded.inFlightMax)}`;
  const limits = `${number(rate)}/s, ${cap(inFlightMax)}`;
  return [
    localTime(recorded.atMs),
    `${number(recorded.offeredPerSecond)}/s`,
    `${number(recorded.okPerSecond)}/s`,
    recorded.p95Ms === null ? '·' : `${number(recorded.p95Ms)} ms`,
    was,
    state === 'closed' ? limits : `${state}, ${limits}`,
    binds === 'nothing' ? '·' : binds,
    missed.length === 0 ? '·' : missed.map(clean).join(', '),
    decided(changes),
  ];
}

/** `law_cut ×3, law_raise`. */
function decided(changes: Replayed['changes']): string {
  const counts = new Map<string, number>();
  for (const { decision } of changes) {
    counts.set(decision.reason, (counts.get(decision.reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, n]) => (n === 1 ? reason : `${reason} ×${n}`)).join(', ') || '·';
}

function leftOutLines({ leftOut, breakerLeftOut }: Replayable): string[] {
  const lines: string[] = [];
  if (leftOut.length > 0) {
    lines.push(
      `Left out, since this past does not tell their values: ${leftOut.join(', ')}. A column or --query of that name gives them.`,
    );
  }
  if (breakerLeftOut) {
    lines.push(
      'Left out: the breaker. A level of it counts by code, upstream or timeout, which no past keeps.',
    );
  }
  return lines;
}

function summaryLines(summary: ReplaySummary): string[] {
  const { minutes, decisions, reasons, rate, inFlightMax, missed } = summary;
  const by = Object.entries(reasons)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, n]) => `${reason} ${n}`);
  const others = minutes - missed;
  return [
    `${decisions} decisions${by.length > 0 ? `: ${by.join(', ')}` : ''}.`,
    `Rate from ${number(rate.least)} to ${number(rate.most)}/s` +
      (inFlightMax.most > 0
        ? `, cap from ${number(inFlightMax.least)} to ${number(inFlightMax.most)}.`
        : ', no cap.'),
    `An objective was missed in ${missed} of ${minutes}: the limits would have been met in ${summary.metWhileMissed} of these and in ${summary.metOtherwise} of the other ${others}.`,
  ];
}

const WHO = { policy: 'policy', static: 'its numbers, never moved', none: 'no limit' };

function closedText(io: CliIo, closed: ClosedLoop | NoFit): void {
  io.out('');
  if (closed.kind === 'refused') {
    io.out(io.c.yellow(`No closed loop: ${closed.message}`));
    return;
  }
  const { fit, fromMs, toMs, recordedOkPerSecond, rows } = closed;
  io.out(`Closed loop, the worst stretch: ${localTime(fromMs)} to ${localTime(toMs)}.`);
  io.out(plantLine({ ...fit, isDefault: false, fit }));
  const body = rows.map(({ who, goodPerSecond, p95Ms, deniedShare, changes }) => [
    WHO[who],
    `${number(goodPerSecond)}/s`,
    p95Ms === null ? '·' : `${Math.round(p95Ms)} ms`,
    `${(100 * deniedShare).toFixed(1)} %`,
    String(changes),
  ]);
  io.out(io.table(['', 'good', 'p95', 'denied', 'changes'], body));
  io.out(`Recorded were ${number(recordedOkPerSecond)} ok/s, in time or late.`);
}

export function backtestJson({ file, policy, source, able, replayed, summary, closed }: Backtest) {
  return {
    policy: policy.limiter.name,
    file,
    law: policy.control.law,
    source,
    warning: WARNING,
    leftOut: able.leftOut,
    breakerLeftOut: able.breakerLeftOut,
    summary,
    minutes: replayed.map(({ recorded, state, rate, inFlightMax, binds, missed, changes }) => ({
      ...recorded,
      wouldBe: { state, rate, inFlightMax },
      binds,
      missed,
      decisions: changes.map(({ atMs, decision }) => ({
        atMs,
        reason: decision.reason,
        sentence: decision.sentence,
      })),
    })),
    closedLoop: closed === undefined ? null : closed,
  };
}
