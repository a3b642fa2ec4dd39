/** The page of a simulation: one HTML file that asks for nothing else, with plots, figures and every change. Stage: simulate. */

import { escaped } from '../markup.js';
import type { Policy } from '../policy/schema.js';
import type { Comparison, Plant, Result } from './compare.js';
import { PAGE_STYLE } from './page-style.js';
import { plotSvg } from './plot.js';
import { plotsOf } from './plots.js';
import { cellsOf, HEAD, meanGoodput, type Row, rowOf } from './rows.js';

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
<p class="plant">${unbroken(escaped(plantSays))}</p>
<p>${escaped(file)}, law ${escaped(policy.control.law)}${policy.mode === 'auto' ? '' : `, mode ${escaped(policy.mode)}, simulated as if auto`}${owner(policy)}; ${seeds.length === 1 ? 'seed' : 'seeds'} ${escaped(seeds.join(', '))}. Goodput ${meanGoodput(rows, 'policy').toFixed(3)} of the best constant limits, mean of the scenarios.</p>
${table(rows)}
<p class="note">policy … step rule: good answers ÷ those of the best constant limits, phase by phase.
From SLO missed on: the policy’s.</p>
${sections.join('\n')}
</body>
</html>
`;
}

/** An option is one word. */
function unbroken(html: string): string {
  return html.replace(/--\w+( &lt;\w+&gt;)?/g, '<span class="whole">$&</span>');
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
  return `<div class="scrolled"><table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function section(
  policy: Policy,
  plant: Plant,
  { scenario, seed, results }: Comparison,
  row: Row,
): string {
  const plots = plotsOf(policy, plant, { scenario, results });
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
