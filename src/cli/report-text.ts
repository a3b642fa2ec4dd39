/** A report as lines for a person: of one limiter in full, of many as a table. Pure. Stage: cli. */
import { thousands } from '../audit/episode-sentence.js';
import type { HeldBack } from '../audit/standing.js';
import type { CeilingView, ReportView, SuggestedNumber } from '../view/report-types.js';
import { episodeText } from './audit-episodes.js';
import { wrap } from './entry-text.js';
import type { CliIo } from './output.js';
import { clean, localTime, number, span } from './text.js';

const LABEL = 15;

export function reportLines(io: CliIo, view: ReportView): string[] {
  const { c } = io;
  const lines: string[] = [];
  const say = (label: string, text: string) => {
    const [first = '', ...more] = wrap(text, Math.max(40, io.columns - LABEL - 2));
    lines.push(`  ${c.dim(label.padEnd(LABEL))}${first}`);
    for (const line of more) lines.push(`  ${' '.repeat(LABEL)}${line}`);
  };
  const from = localTime(view.sinceMs).slice(0, 16);
  const to = localTime(view.atMs).slice(0, 16);
  lines.push(
    `${c.bold(clean(view.limiter))}  ${from} … ${to} (${span(view.atMs - view.sinceMs)})  mode ${view.mode}, breaker ${view.state}`,
  );
  for (const [label, text] of reportFacts(view)) say(label, text);
  if (view.episodes.length > 0) lines.push('');
  for (const episode of view.episodes) lines.push(episodeText(io, episode, false));
  if (view.more) lines.push(c.dim(`    … and others: flyball audit ${clean(view.limiter)}`));
  return lines;
}

/** What is told of a limiter, label by label; empty labels go on with the one before. */
export function reportFacts(view: ReportView): [label: string, text: string][] {
  return (
    [
      ['changes', changesText(view)],
      ['at the floor', timeText(view, view.atFloorMs)],
      ['at the ceiling', timeText(view, view.atCeilingMs)],
      ['breaker', breakerText(view)],
      ['denied', deniedText(view)],
      ['objective', objectiveText(view)],
      ...view.ceilings.map((each) => ['bound', ceilingText(each)]),
      ['held back', view.held.map(heldText).join('; ')],
      ['would be', wouldBeText(view)],
      ...suggestedFacts(view),
    ] as [string, string][]
  ).filter(([, text]) => text !== '');
}

export function reportTable(io: CliIo, views: readonly ReportView[]): string {
  return io.table(
    REPORT_HEADS.map((head) => head.toUpperCase()),
    reportRows(views),
  );
}

export const REPORT_HEADS = [
  ...['Limiter', 'Changes', 'Episodes', 'Floor', 'Ceiling', 'Trips', 'Open'],
  ...['Denied', 'Missed', 'Bound'],
];

/** Of many limiters one line each; the first column is the limiter. */
export function reportRows(views: readonly ReportView[]): string[][] {
  const time = (ms: number) => (ms > 0 ? span(ms) : '–');
  return views.map((view) => [
    clean(view.limiter),
    thousands(view.changes.total),
    `${movedEpisodes(view).length}${view.more ? '+' : ''}`,
    time(view.atFloorMs),
    time(view.atCeilingMs),
    String(view.trips),
    time(view.openMs),
    view.traffic === null ? 'unknown' : thousands(view.traffic.denied),
    view.traffic === null ? 'unknown' : time(view.traffic.objectiveMissedS * 1000),
    view.ceilings.map(ceilingText).join('; '),
  ]);
}

function movedEpisodes({ episodes }: ReportView) {
  return episodes.filter(({ moved, lane }) => moved && lane === 'in_force');
}

/** `41 (40 by the autopilot, 1 by persons) in 2 episodes: law_raise 36, law_cut 4, rollback 1`. */
function changesText(view: ReportView): string {
  const { total, autopilot, persons, byReason } = view.changes;
  if (total === 0) return 'none';
  const who = `${thousands(autopilot)} by the autopilot, ${thousands(persons)} by persons`;
  const count = movedEpisodes(view).length;
  const episodes = `${count}${view.more ? ' or more' : ''} ${count === 1 ? 'episode' : 'episodes'}`;
  const reasons = Object.entries(byReason)
    .sort(([, m], [, n]) => n - m)
    .map(([reason, times]) => `${clean(reason)} ${thousands(times)}`);
  return `${thousands(total)} (${who}) in ${episodes}: ${reasons.join(', ')}`;
}

/** `4 min 10 s (0.3 %)` of the time of which the log tells. */
function timeText({ knownMs }: ReportView, ms: number): string {
  if (knownMs === 0) return 'unknown: the log does not reach back so far';
  return ms === 0 ? 'never' : `${span(ms)} (${share(ms, knownMs)})`;
}

function breakerText({ trips, openMs }: ReportView): string {
  if (trips === 0 && openMs === 0) return 'never opened';
  return `opened ${trips} ${trips === 1 ? 'time' : 'times'}, stood open or half-open for ${span(openMs)}`;
}

function deniedText({ traffic }: ReportView): string {
  if (traffic === null) return 'unknown: there are no minute roll-ups of that time';
  const { denied, offered, byReason, worstMinute } = traffic;
  if (denied === 0) return `none of ${thousands(offered)} requests`;
  const by = Object.entries(byReason)
    .sort(([, m], [, n]) => n - m)
    .map(([reason, count]) => `${clean(reason)} ${thousands(count)}`);
  const worst = worstMinute
    ? `; most in the minute from ${localTime(worstMinute.atMs).slice(11, 16)}: ${thousands(worstMinute.denied)}`
    : '';
  return `${thousands(denied)} of ${thousands(offered)} requests (${share(denied, offered)}): ${by.join(', ')}${worst}`;
}

function objectiveText({ traffic }: ReportView): string {
  if (traffic === null) return '';
  const { objectiveMissedS, watchedS } = traffic;
  if (watchedS === 0) return 'unknown: no daemon watched';
  const watched = `of the ${span(watchedS * 1000)} that a daemon watched with traffic`;
  if (objectiveMissedS === 0) return `never missed ${watched}`;
  return `missed for ${span(objectiveMissedS * 1000)}, ${share(objectiveMissedS, watchedS)} ${watched}`;
}

/** `would be 520; bounds.rate.max holds 400 (history)`. */
function ceilingText({ wouldBe, holds, bound, by, setBy }: CeilingView): string {
  const said = by === 'history' ? ' (by its history)' : '';
  const who = setBy === null ? '' : `, as ${clean(setBy)} set it for a while`;
  return `would be ${number(wouldBe)}; ${bound} holds ${number(holds)}${who}${said}`;
}

function heldText({ guard, times }: HeldBack): string {
  return `${clean(guard)} ${thousands(times)} ${times === 1 ? 'time' : 'times'}`;
}

function wouldBeText({ wouldBe, mode }: ReportView): string {
  if (wouldBe === null) return '';
  const cap = wouldBe.inFlightMax > 0 ? `, cap ${number(wouldBe.inFlightMax)}` : '';
  return `${clean(wouldBe.state)}, rate ${number(wouldBe.rate)}/s${cap} (mode ${mode}: not applied)`;
}

function suggestedFacts({ suggested, limiter }: ReportView): [string, string][] {
  if (suggested === null) return [];
  if (suggested.status === 'refused') {
    return [['suggested', `nothing: ${clean(suggested.sentence)}`]];
  }
  const { rate, capacity, inFlightMax } = suggested;
  return [
    ['suggested', suggestedText('rate', rate, '/s')],
    ...(capacity ? [['', suggestedText('capacity', capacity, ' tokens')] as [string, string]] : []),
    ...(inFlightMax
      ? [['', suggestedText('in-flight cap', inFlightMax, '')] as [string, string]]
      : []),
    ['', `flyball tune ${clean(limiter)} shows their bands, and --apply puts them in force`],
  ];
}

function suggestedText(what: string, of: SuggestedNumber, unit: string): string {
  const now = of.inForce > 0 ? `${number(of.inForce)}${unit}` : 'none';
  return `${what} ${number(of.value)}${unit} (in force ${now}): ${clean(of.why)}`;
}

function share(part: number, whole: number): string {
  return `${number(Number(((part / Math.max(whole, 1)) * 100).toPrecision(2)))} %`;
}
