/** Plots one below the other as one SVG file that stands by itself, with a key to its lines: for documents. Stage: simulate. */
import { escaped } from '../markup.js';
import { type Axis, HEIGHT, LEFT, type Plot, plotted, RIGHT, WIDTH } from './plot.js';

export interface Picture {
  /** Told to who cannot see it. */
  says: string;
  plots: readonly Plot[];
  axis: Axis;
}

/** A ground of its own, so that it reads on a light page and on a dark one. */
const STYLE = `text { font: 11.5px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #5b6472; }
.ground { fill: #fbfcfd; stroke: #d8dee6; } .title { fill: #1a202c; font-weight: 600; } .unit { font-weight: 400; }
.end { text-anchor: end; } .mid { text-anchor: middle; } .grid { stroke: #d8dee6; stroke-width: .7; }
.mark { stroke: #5b6472; stroke-width: .8; stroke-dasharray: 2 3; } .open { fill: #fbe3da; }
.objective { stroke: #c2410c; stroke-width: 1.2; stroke-dasharray: 6 4; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .own { stroke: #0b6e63; }
.best { stroke: #7a5af0; stroke-dasharray: 5 3; } .none { stroke: #c2410c; stroke-width: 1.2; }
.offered { stroke: #64748b; } .admitted { stroke: #1d63c4; } .static { stroke: #b7791f; }`;
const MARGIN = 10;
const GAP = 14;
/** Of a letter, about: text is as wide as who shows it makes it. */
const LETTER = 6.4;
const KEY = 22;

export function pictureSvg({ says, plots, axis }: Picture): string {
  const height = 2 * MARGIN + plots.length * (HEIGHT + GAP) - GAP;
  const panels = plots.map((plot, i) => {
    const y = MARGIN + i * (HEIGHT + GAP);
    return `<g transform="translate(0 ${y})">\n${plotted(plot, axis)}\n${keyOf(plot)}\n</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(says)}">
<title>${escaped(says)}</title>
<style>${STYLE}</style>
<rect class="ground" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${panels.join('\n')}
</svg>
`;
}

/** From the right end of the title's line; over its left half the title stands. */
function keyOf({ lines, objective }: Plot): string {
  const entries = [
    ...lines.map(({ title, style }) => ({ title, style: `line ${style}` })),
    ...(objective === undefined ? [] : [{ title: 'objective', style: 'objective' }]),
  ];
  let right = WIDTH - RIGHT;
  const drawn: string[] = [];
  for (const { title, style } of entries.reverse()) {
    const text = right - title.length * LETTER;
    if (text < LEFT) throw new RangeError(`the key of ${title} does not fit`);
    drawn.push(
      `<path class="${style}" d="M${text - KEY} 10H${text - 4}"/><text x="${text}" y="14">${escaped(title)}</text>`,
    );
    right = text - KEY - 12;
  }
  return drawn.reverse().join('\n');
}
