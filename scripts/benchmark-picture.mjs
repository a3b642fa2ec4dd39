/** Draws the table of the control benchmark in docs/control.md: a row a scenario, a dot a contender. For `plots.mjs`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const WIDTH = 860;
const LEFT = 130;
const RIGHT = 30;
const TOP = 58;
const ROW = 30;
const STYLE = `text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #5b6472; }
.ground { fill: #fbfcfd; stroke: #d8dee6; } .title { fill: #1a202c; font-weight: 600; } .end { text-anchor: end; }
.mid { text-anchor: middle; } .grid { stroke: #d8dee6; stroke-width: .7; } .span { stroke: #d8dee6; stroke-width: 3; }
.c0 { fill: #0b6e63; } .c1 { fill: #1d63c4; } .c2 { fill: #7a5af0; } .c3 { fill: #b7791f; } .c4 { fill: #c2410c; }`;

export function benchmarkPicture(root) {
  const { head, rows } = tableOf(readFileSync(join(root, 'docs/control.md'), 'utf8'));
  const bottom = TOP + rows.length * ROW;
  const x = (score) => LEFT + score * (WIDTH - LEFT - RIGHT);
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (score) =>
      `<line class="grid" x1="${x(score)}" x2="${x(score)}" y1="${TOP - 8}" y2="${bottom}"/>` +
      `<text class="mid" x="${x(score)}" y="${bottom + 18}">${score}</text>`,
  );
  const drawn = rows.map(({ name, scores }, i) => {
    const y = TOP + ROW * (i + 0.5);
    const span = `<line class="span" x1="${x(Math.min(...scores))}" x2="${x(Math.max(...scores))}" y1="${y}" y2="${y}"/>`;
    // The first contender is drawn last, on top.
    const dots = scores.map((score, k) => dot(k, x(score), y)).reverse();
    return `<text class="end" x="${LEFT - 14}" y="${y + 4}">${name}</text>${span}${dots.join('')}`;
  });
  const key = head.map((title, k) => {
    const at = LEFT + (k * (WIDTH - LEFT - RIGHT)) / head.length;
    return `${dot(k, at + 6, 36)}<text x="${at + 16}" y="40">${title}</text>`;
  });
  const height = bottom + 30;
  const named = 'role="img" aria-label="Scores by scenario"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" ${named}>
<title>Scores by scenario: 1 is the better of the best constant rate and cap</title>
<style>${STYLE}</style>
<rect class="ground" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
<text class="title" x="${LEFT}" y="20">Score by scenario: 1 is what the best constant limits keep, phase by phase</text>
${[...key, ...grid, ...drawn].join('\n')}
</svg>
`;
}

function dot(k, x, y) {
  return `<circle class="c${k}" cx="${x.toFixed(1)}" cy="${y}" r="${k < 2 ? 6 : 4.5}"/>`;
}

function tableOf(text) {
  const [, table] = /<!-- benchmark -->\n((?:\|.*\n)+)/.exec(text) ?? [];
  const cells = (line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('*', ''));
  const [head, , ...lines] = table.trim().split('\n').map(cells);
  const rows = lines.map(([name, ...scores]) => ({ name, scores: scores.map(Number) }));
  if (rows.some(({ scores }) => scores.some(Number.isNaN))) throw new Error('a score is no number');
  return { head: head.slice(1), rows };
}
