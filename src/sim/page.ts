/** The page of a simulation: one HTML file that asks for nothing else, with plots, figures and every change. Stage: simulate. */
import { addBins, quantileOfBins } from '../histogram.js';
import type { Policy } from '../policy/schema.js';
import type { Comparison, Plant, Result } from './compare.js';
import { PAGE_STYLE } from './page-style.js';
import { escaped, type Plot, plotSvg } from './plot.js';
import { cellsOf, HEAD, meanGoodput, type Row, rowOf } from './rows.js';
import { quantileIn } from './score.js';
import { latencyObjectiveMs } from './service.js';

export interface PageInput {
  policy: Policy;
  file: string;
  plant: Plant;
  plantSays: string;
  /** By scenario, then by seed; the first seed is drawn. */
  results: readonly (readonly Comparison[])[];
}

/** Changes shown of a scenario. */
const CHANGES = 200;

export function simulationPage({ policy, file, plant, plantSays, results }: PageInput): string {
  const rows = results.map(rowOf);
  const { name } = policy.limiter;
  const sections = results.map(([first], i) => section(policy, plant, first!, rows[i]!));
  const seeds = rows[0]?.seeds ?? [];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Simulation of ${escaped(name)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<h1>Simulation of ${escaped(name)}</h1>
<p class="plant">${escaped(plantSays)}</p>
<p>${escaped(file)}, law ${escaped(policy.control.law)}${policy.mode === 'auto' ? '' : `, mode ${escaped(policy.mode)}, simulated as if auto`}${owner(policy)}; seeds ${escaped(seeds.join(', '))}. Goodput ${meanGoodput(rows, 'policy').toFixed(3)} of the best constant limits, mean of the scenarios.</p>
${table(rows)}
<p class="note">policy … step rule: good answers ÷ those of the best constant limits, phase by phase.
From SLO missed on: the policy’s.</p>
${sections.join('\n')}
</body>
</html>
`;
}

function owner(policy: Policy): string {
  return policy.owner === undefined ? '' : `, owner ${escaped(String(policy.owner))}`;
}

function table(rows: readonly Row[]): string {
  const head = HEAD.map((title) => `<th scope="col">${escaped(title)}</th>`).join('');
  const body = rows.map((row) => {
    const [first, ...cells] = cellsOf(row);
    const link = `<th scope="row"><a href="#${escaped(row.scenario)}">${escaped(first!)}</a></th>`;
    return `<tr>${link}${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`;
  });
  return `<div class="wide"><table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function section(
  policy: Policy,
  plant: Plant,
  { scenario, seed, results }: Comparison,
  row: Row,
): string {
  const plots = plotsOf(policy, plant, { scenario, seed, results });
  const legends = plots.map(({ lines }) =>
    lines
      .map(({ title, style }) => `<span class="key ${escaped(style)}">${escaped(title)}</span>`)
      .join(' '),
  );
  const drawn = plots.map(
    (plot, i) =>
      `<figure>${plotSvg(plot, scenario.durationS)}<figcaption>${legends[i]}</figcaption></figure>`,
  );
  return `<section id="${escaped(scenario.name)}">
<h2>${escaped(scenario.name)}</h2>
<p>${escaped(scenario.says)} <span class="note">Drawn: seed ${seed}.</span></p>
${drawn.join('\n')}
${table([row])}
${changesOf(results.policy)}
</section>`;
}

function plotsOf(policy: Policy, plant: Plant, { scenario, results }: Comparison): Plot[] {
  const { policy: own, best, none } = results;
  const quantile = quantileIn(policy);
  const objective = latencyObjectiveMs(policy);
  const shaded = openSpans(own);
  const common = { shaded, marks: scenario.phases.slice(1) };
  const carried = plant.capacityPerSecond;
  const offered = own.seconds.map((second) => second.offered);
  const times = quantiles(own, quantile);
  return [
    {
      ...common,
      title: 'Load',
      unit: 'requests a second',
      lines: [
        { title: 'offered', style: 'offered', values: offered },
        {
          title: 'admitted',
          style: 'admitted',
          values: own.seconds.map((second) => second.admitted),
        },
      ],
    },
    {
      ...common,
      title: 'Good answers',
      unit: 'a second',
      most: 2.5 * carried,
      lines: [
        { title: 'no limit', style: 'none', values: none.seconds.map(({ good }) => good) },
        {
          title: 'best constant limits',
          style: 'best',
          values: best.seconds.map(({ good }) => good),
        },
        { title: 'this policy', style: 'own', values: own.seconds.map(({ good }) => good) },
      ],
    },
    {
      ...common,
      title: `Response time of what was admitted, p${Number((100 * quantile).toPrecision(4))}`,
      unit: objective === null ? 'ms' : `ms, objective ${objective} ms`,
      ...(objective === null ? {} : { objective, most: 4 * objective }),
      lines: [{ title: 'this policy', style: 'own', values: times }],
    },
    {
      ...common,
      title: 'In force: rate',
      unit: 'a second',
      lines: [{ title: 'rate', style: 'own', values: own.seconds.map(({ rate }) => rate) }],
    },
    {
      ...common,
      title: 'In flight',
      unit: 'requests',
      lines: [
        {
          title: 'cap in force',
          style: 'own',
          values: own.seconds.map(({ inFlightMax }) => (inFlightMax > 0 ? inFlightMax : null)),
        },
        {
          title: 'under way',
          style: 'admitted',
          values: own.seconds.map(({ inFlight }) => inFlight),
        },
      ],
    },
  ];
}

/** By windows of three seconds; null of nothing. */
function quantiles({ seconds }: Result, quantile: number): (number | null)[] {
  return seconds.map((_, s) => {
    const bins = {};
    for (const { latency } of seconds.slice(Math.max(0, s - 1), s + 2)) addBins(bins, latency);
    return quantileOfBins(bins, quantile);
  });
}

/** Spans of seconds in which the breaker was not closed, from the changes. */
function openSpans({ changes, seconds }: Result): [number, number][] {
  const spans: [number, number][] = [];
  let from: number | null = null;
  for (const { atMs, decision } of changes) {
    const isOpen = decision.state === 'open' || decision.state === 'half-open';
    if (isOpen && from === null) from = atMs / 1000;
    else if (!isOpen && from !== null) {
      spans.push([from, atMs / 1000]);
      from = null;
    }
  }
  if (from !== null) spans.push([from, seconds.length]);
  return spans;
}

function changesOf({ changes }: Result): string {
  if (changes.length === 0) return '<p class="note">Nothing was changed.</p>';
  const items = changes.slice(0, CHANGES).map(({ atMs, decision }) => {
    return `<li><time>${Math.round(atMs / 1000)} s</time> <code>${escaped(decision.reason)}</code> ${escaped(decision.sentence)}</li>`;
  });
  const more = changes.length - items.length;
  const rest = more > 0 ? `<p class="note">and ${more} more</p>` : '';
  const count = `${changes.length} change${changes.length === 1 ? '' : 's'}`;
  return `<details><summary>${count}</summary><ol>${items.join('')}</ol>${rest}</details>`;
}
