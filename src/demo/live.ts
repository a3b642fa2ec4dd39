/** What a person sees while the demo runs: a table that redraws itself at a terminal, plain lines elsewhere. Stage: demo. */
import { mean, merge, quantile } from './histogram.js';
import type { PlaySecond } from './play.js';
import { PHASE_TITLES, type Phase, phaseAt } from './story.js';

export interface Screen {
  /** Redraw in place? */
  readonly live: boolean;
  /** Of the terminal: a longer line would wrap and spoil the redrawing. */
  readonly columns: number;
  write(text: string): void;
}

const PLAIN_EVERY_SECONDS = 5;
const COLUMNS = ['arrive/s', 'good/s', 'refused/s', 'failed/s', 'timeout/s', 'p95 ms', 'db waits'];
const LABEL_WIDTH = 25;
const COLUMN_WIDTH = 10;
/** Where the other play's good answers stand: beside this one's. */
const BEFORE_AT = 2;

/** One play's view. `before` are the seconds of the play without Flyball, to compare phase by phase. */
export function createLiveView(screen: Screen, title: string, before: PlaySecond[] | null) {
  const seen: PlaySecond[] = [];
  let drawn = 0;

  function draw(lines: readonly string[]) {
    const up = drawn > 0 ? `\x1b[${drawn}A` : '';
    screen.write(
      `${up}${lines.map((line) => `\x1b[2K${line.slice(0, screen.columns)}`).join('\n')}\n`,
    );
    drawn = lines.length;
  }

  return {
    second(second: PlaySecond, phases: readonly Phase[]) {
      seen.push(second);
      const phase = phaseAt(phases, second.second);
      const end = phase.from + phase.seconds;
      const left = Math.max(0, end - second.second - 1);
      if (screen.live) return draw(table(title, seen, before, phases, phase, left));
      const begins = second.second === phase.from;
      if (
        second.second < end &&
        (begins || (second.second - phase.from) % PLAIN_EVERY_SECONDS === 0)
      )
        screen.write(`${plainLine(title, second, phase, left)}\n`);
    },
  };
}

function table(
  title: string,
  seen: readonly PlaySecond[],
  before: readonly PlaySecond[] | null,
  phases: readonly Phase[],
  phase: Phase,
  left: number,
): string[] {
  const last = phases.at(-1)!;
  const now = seen.at(-1)!;
  const all = Math.max(0, last.from + last.seconds - now.second - 1);
  const head = before ? COLUMNS.toSpliced(BEFORE_AT, 0, '(without)') : COLUMNS;
  const rows = phases.map((each) => {
    const own = seen.filter((s) => s.phase === each.name);
    const label = `${each === phase ? '▸' : ' '} ${PHASE_TITLES[each.name]}`;
    const past = before?.filter((s) => s.phase === each.name) ?? [];
    const cells = own.length > 0 ? numbers(own) : COLUMNS.map(() => '·');
    const other = `(${perSecond(past, (s) => s.good)})`;
    return row(label, before ? cells.toSpliced(BEFORE_AT, 0, other) : cells);
  });
  return [
    `${title} · ${PHASE_TITLES[phase.name]} · ${left} s left of this phase, ${all} s of this play`,
    '',
    row('', head),
    ...rows,
    row('  this second', before ? numbers([now]).toSpliced(BEFORE_AT, 0, '') : numbers([now])),
    `  ${limiterText(now)}`,
  ];
}

function numbers(seconds: readonly PlaySecond[]): string[] {
  const waits = seconds.flatMap((s) => s.waits);
  return [
    perSecond(seconds, (s) => s.offered),
    perSecond(seconds, (s) => s.good),
    perSecond(seconds, (s) => s.refused),
    perSecond(seconds, (s) => s.failed + s.broken),
    perSecond(seconds, (s) => s.timedOut),
    show(quantile(merge(seconds.map((s) => s.latency)), 0.95)),
    waits.length === 0 ? '·' : show(waits.reduce((a, b) => a + b) / waits.length),
  ];
}

function plainLine(title: string, second: PlaySecond, phase: Phase, left: number): string {
  const { offered, good, refused, failed, broken, timedOut, latency } = second;
  const late = mean(latency) === null ? 'none admitted' : `p95 ${show(quantile(latency, 0.95))} ms`;
  const waits = second.waits.at(-1) ?? 0;
  return (
    `${title}: ${PHASE_TITLES[phase.name]}, ${left} s left: ${offered} arrive, ${good} good, ` +
    `${refused} refused, ${failed + broken} failed, ${timedOut} timed out, ${late}, ` +
    `${waits} waiting for the database; ${limiterText(second)}`
  );
}

function limiterText(second: PlaySecond): string {
  const look = second.looks.at(-1);
  if (!look) return 'no limiter';
  return `breaker ${look.state}, rate ${show(look.rate)}/s, in-flight cap ${look.inFlightMax}, revision ${look.revision}`;
}

function perSecond(seconds: readonly PlaySecond[], pick: (s: PlaySecond) => number): string {
  if (seconds.length === 0) return '·';
  return show(seconds.reduce((sum, s) => sum + pick(s), 0) / seconds.length);
}

function row(label: string, cells: readonly string[]): string {
  return label.padEnd(LABEL_WIDTH) + cells.map((cell) => cell.padStart(COLUMN_WIDTH)).join('');
}

function show(value: number | null): string {
  if (value === null) return '·';
  return value >= 10 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}
