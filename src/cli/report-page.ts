/** The page of a report: one HTML file that asks for nothing else, to send to others; plots of each limiter's minutes. Stage: cli. */
import { escaped } from '../markup.js';
import { HISTORY_MINUTE_MS, type HistoryRow } from '../redis/history-rows.js';
import { PAGE_STYLE } from '../sim/page-style.js';
import { bothWidths, type Plot } from '../sim/plot.js';
import type { EpisodeView } from '../view/episodes.js';
import type { ReportView } from '../view/report-types.js';
import { detailText, timesText } from './audit-episodes.js';
import { axisOf, type Grid, gridOf } from './report-grid.js';
import { REPORT_HEADS, reportFacts, reportRows } from './report-text.js';
import { clean, localTime, span } from './text.js';

export interface ReportPageInput {
  sinceMs: number;
  atMs: number;
  /** Without its password. */
  redis: string;
  limiters: readonly { view: ReportView; rows: readonly HistoryRow[] }[];
}

const READING = `<p class="note">Shaded: breaker not closed. Dotted: an episode begins.
A gap: no requests came, or no daemon ran.</p>`;

const STYLE = `${PAGE_STYLE}
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: .75rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; } li .note { display: block; } .would { color: var(--soft); font-style: italic; }
.all td:last-child { text-align: left; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } section { break-before: page; }
  figure, li { break-inside: avoid; } details > * { display: block; } }
`;

export function reportPage({ sinceMs, atMs, redis, limiters }: ReportPageInput): string {
  const names = limiters.map(({ view }) => view.limiter);
  const of = names.length === 1 ? names[0]! : `${names.length} limiters`;
  const times = `${minute(sinceMs)} … ${minute(atMs)}`;
  const sections = limiters.map((one) => section(one.view, one.rows, sinceMs, atMs));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Report of ${escaped(clean(of))}, ${escaped(times)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Report of ${text(of)}</h1>
<p>${escaped(times)} (${span(atMs - sinceMs)}), ${escaped(zoneText(sinceMs, atMs))}.
<span class="note">Redis at ${text(redis)}.</span></p>
${names.length > 1 ? summary(limiters.map(({ view }) => view)) : ''}
${sections.map((html, i) => `<section id="l${i}">\n${html}\n</section>`).join('\n')}
</body>
</html>
`;
}

/** All at a glance, those whose breaker opened and that denied the most first; each leads to its part of the page. */
function summary(views: readonly ReportView[]): string {
  const heads = REPORT_HEADS.map((head) => `<th scope="col">${head}</th>`).join('');
  const rows = reportRows(views).map(([, ...cells], i) => {
    const { limiter } = views[i]!;
    const link = `<th scope="row"><a href="#l${i}">${text(limiter)}</a></th>`;
    const html = `<tr>${link}${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`;
    return { html, view: views[i]! };
  });
  const weight = ({ trips, traffic, changes }: ReportView) =>
    [trips, traffic?.denied ?? 0, changes.total] as const;
  rows.sort((a, b) => {
    const [one, other] = [weight(a.view), weight(b.view)];
    const at = one.findIndex((n, i) => n !== other[i]);
    return at < 0 ? 0 : other[at]! - one[at]!;
  });
  return `<div class="scrolled" tabindex="0" role="region" aria-label="All limiters"><table class="all">
<thead><tr>${heads}</tr></thead>
<tbody>${rows.map(({ html }) => html).join('\n')}</tbody></table></div>`;
}

function section(
  view: ReportView,
  rows: readonly HistoryRow[],
  sinceMs: number,
  atMs: number,
): string {
  const facts = reportFacts(view).map(
    ([label, said]) => `<dt>${escaped(label)}</dt><dd>${escaped(said)}</dd>`,
  );
  const grid = gridOf(drawnFrom(view, rows, sinceMs, atMs), atMs);
  const plots = rows.length === 0 ? [] : plotsOf(view, rows, grid);
  const drawn = plots.map((plot) => {
    const keys = plot.lines.map(
      ({ title, style }) => `<span class="key ${escaped(style)}">${escaped(title)}</span>`,
    );
    const drawn = bothWidths(plot, axisOf(grid, 8), axisOf(grid, 4));
    return `<figure>${drawn}<figcaption>${keys.join(' ')}</figcaption></figure>`;
  });
  const none =
    '<p class="note">There are no minute roll-ups of that time, so nothing is drawn.</p>';
  return `<h2>${text(view.limiter)}</h2>
<p class="note">Mode ${escaped(view.mode)}, breaker ${escaped(view.state)} at the end.</p>
<dl>${facts.join('')}</dl>
${drawn.length > 0 ? `${READING}\n${drawn.join('\n')}` : none}
${episodes(view)}`;
}

function episodes({ episodes: told, more, limiter }: ReportView): string {
  if (told.length === 0) return '<p class="note">Nothing was changed.</p>';
  const rest = more
    ? `<p class="note">and others: <code>flyball audit ${text(limiter)}</code></p>`
    : '';
  return `<h3>What happened, newest first</h3>\n<ol>${told.map(item).join('\n')}</ol>${rest}`;
}

function item(episode: EpisodeView): string {
  const below = detailText(episode);
  const note = below === '' ? '' : `<span class="note">${text(below)}</span>`;
  const lane = episode.lane === 'would_be' ? '<span class="would">recommended only</span> ' : '';
  const times = `<time datetime="${escaped(episode.from ?? '')}" title="${escaped(utc(episode.fromMs))} UTC">${escaped(timesText(episode))}</time>`;
  return `<li>${times} ${lane}${text(episode.sentence)}${note}</li>`;
}

/** Demand against the rate, the cap against what was under way, response times, what was denied. */
function plotsOf(view: ReportView, rows: readonly HistoryRow[], grid: Grid): Plot[] {
  const steps = stepsOf(rows, grid);
  const of = (value: (row: HistoryRow) => number | null) =>
    steps.map((step) => mean(step.map(value).filter((one) => one !== null)));
  const perSecond = (count: (row: HistoryRow) => number) => of((row) => count(row) / 60);
  const denied = (row: HistoryRow) => Object.values(row.denied).reduce((sum, n) => sum + n, 0);
  const shaded = steps.flatMap((step, i): (readonly [number, number])[] =>
    step.some(({ notClosedS }) => notClosedS > 0) ? [[i, i + 1]] : [],
  );
  const marks = view.episodes
    .filter(({ lane, moved }) => lane === 'in_force' && moved)
    .map(({ fromMs }) => (fromMs / HISTORY_MINUTE_MS - grid.first) / grid.each)
    .filter((at) => at >= 0 && at <= grid.to);
  const common = { shaded, marks };
  return [
    {
      ...common,
      title: 'Demand and rate',
      unit: 'requests a second',
      lines: [
        { title: 'offered', style: 'offered', values: perSecond((row) => row.offered) },
        { title: 'admitted', style: 'admitted', values: perSecond((row) => row.admitted) },
        { title: 'rate', style: 'own', values: of((row) => row.rate) },
      ],
    },
    {
      ...common,
      title: 'In flight and cap',
      unit: 'requests',
      lines: [
        { title: 'in flight', style: 'admitted', values: of((row) => row.inFlight) },
        { title: 'cap', style: 'best', values: of((row) => row.inFlightMax || null) },
      ],
    },
    {
      ...common,
      title: 'Response time',
      unit: 'ms',
      lines: [
        { title: 'p95', style: 'own', values: of((row) => row.p95Ms) },
        { title: 'p99', style: 'none', values: of((row) => row.p99Ms) },
      ],
    },
    {
      ...common,
      title: 'Denied',
      unit: 'requests a second',
      lines: [{ title: 'denied', style: 'none', values: perSecond(denied) }],
    },
  ];
}

const LEAST_DRAWN_MS = 10 * HISTORY_MINUTE_MS;

/** Of a limiter that is younger than the time of the report, from its first minute. */
function drawnFrom(
  { episodes }: ReportView,
  rows: readonly HistoryRow[],
  sinceMs: number,
  atMs: number,
): number {
  const began = episodes.map(({ fromMs }) => fromMs);
  const first = Math.min((rows[0]?.minute ?? 0) * HISTORY_MINUTE_MS, ...began);
  return Math.max(sinceMs, Math.min(first, atMs - LEAST_DRAWN_MS));
}

/** The rows of each step, so that minutes without traffic are gaps. */
function stepsOf(rows: readonly HistoryRow[], { first, each, to }: Grid): HistoryRow[][] {
  const steps: HistoryRow[][] = Array.from({ length: to }, () => []);
  for (const row of rows) steps[Math.floor((row.minute - first) / each)]?.push(row);
  return steps;
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, n) => sum + n, 0) / values.length;
}

/** Of others: control characters shown, markup inert, its direction its own. */
function text(outside: string): string {
  return `<bdi>${escaped(clean(outside))}</bdi>`;
}

function minute(ms: number): string {
  return localTime(ms).slice(0, 16);
}

function utc(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** Whose times these are, and what they are in UTC. */
function zoneText(sinceMs: number, atMs: number): string {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === 'UTC') return 'times in UTC';
  return `times of ${zone}; in UTC ${utc(sinceMs)} … ${utc(atMs)}`;
}
