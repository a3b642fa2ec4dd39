/** The end of the demo for people: both plays side by side, what the limiter did as a story, what to try. Stage: demo. */
import type { StoredEntry, VerifyReport } from '../actuate/audit.js';
import { changedNumbers, wrap } from '../cli/entry-text.js';
import { clean, number } from '../cli/text.js';
import { type BreakerTimes, breakerTimes } from './breaker-times.js';
import type { PlayRecord } from './play.js';
import type { DemoResult } from './result.js';
import { type DemoRun, SHARED_PREFIX } from './run-demo.js';
import { PHASE_TITLES, PHASES, phaseAt, SETTLE_SECONDS } from './story.js';
import { type Figures, type PlaySummary, settledP95Ms } from './summary.js';

type Table = (head: readonly string[], rows: readonly (readonly string[])[]) => string;

export interface EndingOptions {
  table: Table;
  columns: number;
  folder: string;
  /** Where the data of the limiter is now. */
  redis: 'stopped' | 'kept' | 'yours';
}

/** All of it, in the order a person reads. */
export function ending(run: DemoRun, result: DemoResult, options: EndingOptions): string {
  const times = (result.with.good / Math.max(1, result.without.good)).toFixed(1);
  return [
    '',
    sideBySide(result, options.table),
    '',
    `without: ${fates(run.without)}`,
    `with:    ${fates(run.guarded)}`,
    '',
    kneeLine(result),
    settledLine(run),
    breakerLine(breakerTimes(run.guarded)),
    `Good answers with Flyball: ${times} times those without.`,
    '',
    `What the autopilot did (${run.changes.length} changes):`,
    auditStory(run.changes, run.guarded, options.columns),
    verifyLine(run.verify),
    '',
    ...whatToTry(run, options),
  ].join('\n');
}

export function sideBySide(result: DemoResult, table: Table): string {
  const phases = table(
    ['good answers a second', 'knee', 'without', 'with', 'p95 without', 'p95 with'],
    PHASES.map((name) => {
      const a = result.without.phases[name];
      const b = result.with.phases[name];
      return [
        PHASE_TITLES[name],
        number(result.knee[name]),
        number(a.goodputPerSecond),
        number(b.goodputPerSecond),
        ms(a.p95Ms),
        ms(b.p95Ms),
      ];
    }),
  );
  const whole = table(
    ['whole play', 'without', 'with'],
    WHOLE.map(([label, pick]) => [label, pick(result.without), pick(result.with)]),
  );
  return `${phases}\n\n${whole}`;
}

const WHOLE: readonly [string, (play: PlaySummary) => string][] = [
  ['orders', (p) => count(p.offered)],
  ['good (ok within 1 s)', (p) => count(p.good)],
  ['mean response, admitted', (p) => ms(p.meanMs)],
  ['p99 response, admitted', (p) => ms(p.p99Ms)],
  ['5xx of admitted', (p) => percent(p.errorRatio5xx)],
  ['database waits, mean', (p) => waits(p.dbWaitsMean)],
  ['database waits, most', (p) => waits(p.dbWaitsMax)],
  ['seconds at rate zero', (p) => number(p.secondsAtRateZero)],
  ['decision, p99', (p) => ms(p.decisionP99Ms)],
];

/** What became of requests that no other row shows; from the seconds, since the JSON's keys are fixed. */
export function fates(record: PlayRecord): string {
  const sum = (pick: (s: PlayRecord['seconds'][number]) => number) =>
    count(record.seconds.reduce((n, s) => n + pick(s), 0));
  return (
    `${sum((s) => s.attempts)} requests sent (retries among them): ${sum((s) => s.ok)} ok, ` +
    `${sum((s) => s.refused)} refused at once, ${sum((s) => s.failed)} failed, ` +
    `${sum((s) => s.timedOut)} timed out, ${sum((s) => s.broken)} without an answer`
  );
}

function settledLine({ without, guarded }: DemoRun): string {
  if (settledP95Ms(guarded) === null) {
    return `No request was admitted later than ${SETTLE_SECONDS} s into a disturbance: too short a play to say how it settles.`;
  }
  return `After the first ${SETTLE_SECONDS} s of each disturbance 95 % of admitted requests took at most ${ms(settledP95Ms(guarded))}; without Flyball ${ms(settledP95Ms(without))}.`;
}

export function breakerLine({ zeroAfterMs, backAfterMs, rateBefore }: BreakerTimes): string {
  const zero =
    zeroAfterMs === null ? 'never went to zero' : `was zero ${seconds(zeroAfterMs)} later`;
  const back =
    backAfterMs === null
      ? 'it was not back at 80 % by the end'
      : `back at 80 % of ${number(rateBefore ?? 0)}/s ${seconds(backAfterMs)} after the upstream returned`;
  return `The upstream failed: the rate ${zero}, ${back}.`;
}

/** One change after another, with the time of the play and the phase it fell in. */
export function auditStory(
  changes: readonly StoredEntry[],
  play: PlayRecord,
  columns: number,
): string {
  return changes
    .map(({ revision, body }) => {
      const at = (body.atMs - play.startedAtMs) / 1000;
      const phase = at < 0 ? 'before the play' : PHASE_TITLES[phaseAt(play.phases, at).name];
      const numbers = changedNumbers(body.before ?? null, body.after ?? null);
      const head = `${at.toFixed(1).padStart(6)} s  ${phase.padEnd(24)} r${revision}  ${numbers}`;
      const told = wrap(clean(body.sentence), Math.max(40, columns - 10));
      return [head, ...told.map((line) => `          ${line}`)].join('\n');
    })
    .join('\n');
}

export function verifyLine(verify: VerifyReport): string {
  return `audit verify: ${verify.verdict}. ${verify.sentence}`;
}

/** A rollback to what was in force in the calm before the surge, on the data where it lies now. */
function whatToTry({ changes, guarded }: DemoRun, { folder, redis }: EndingOptions): string[] {
  const surge = guarded.phases.find((phase) => phase.name === 'surge')!;
  const surgeAt = guarded.startedAtMs + surge.from * 1000;
  const calm = changes.filter((entry) => entry.body.atMs < surgeAt).at(-1) ?? changes[0];
  const undo = `rollback checkout ${calm?.revision ?? 1} --yes`;
  const main = 'node dist/cli/main.js';
  switch (redis) {
    case 'stopped':
      return [
        `Everything is stopped; the data is kept until the next demo, in ${folder}. Try:`,
        `  ${main} demo ${undo}`,
      ];
    case 'kept':
      return [
        `All but the private Redis is stopped; the next demo stops that too. Try:`,
        `  FLYBALL_DATA_DIR=${folder} ${main} ${undo}`,
      ];
    case 'yours':
      return [
        `Everything is stopped; the limiter is kept in your Redis until the next demo. Try:`,
        `  ${main} --prefix ${SHARED_PREFIX} ${undo}`,
      ];
  }
}

export function kneeLine({ knee }: DemoResult): string {
  return `The knee, measured in this run: ${number(knee.calm)} good answers/s; with the database at half speed ${number(knee.slowDatabase)}/s.`;
}

function ms(value: Figures['p95Ms']): string {
  if (value === null) return '–';
  return value < 10 ? `${value} ms` : `${Math.round(value)} ms`;
}

function percent(share: number | null): string {
  return share === null ? '–' : `${Math.round(share * 1000) / 10} %`;
}

function waits(value: number | null): string {
  return value === null ? '–' : count(value);
}

function seconds(value: number): string {
  return `${(value / 1000).toFixed(1)} s`;
}

function count(value: number): string {
  const text = String(Math.round(value * 10) / 10);
  const [whole, part] = text.split('.');
  const grouped = whole!.replace(/\B(?=(\d{3})+$)/g, ' ');
  return part ? `${grouped}.${part}` : grouped;
}
