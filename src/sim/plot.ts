/** Plots as SVG, in the colours of whoever shows them: the page, light or dark, or a picture. Stage: simulate. */
import { escaped } from '../markup.js';

export interface Line {
  title: string;
  /** A class of the style sheet. */
  style: string;
  /** One value for each second, or each step of the axis; null is a gap. */
  values: readonly (number | null)[];
}

export interface Plot {
  title: string;
  unit: string;
  lines: readonly Line[];
  /** A level to hold, drawn across. */
  objective?: number;
  /** Seconds [from, to) that are shaded: the breaker is not closed. */
  shaded?: readonly (readonly [number, number])[];
  /** Seconds at which something changes. */
  marks?: readonly number[];
  /** The axis ends here at most: what is above is cut off. */
  most?: number;
}

/** What lies along a plot: from 0 to `to`, in steps of the values. */
export interface Axis {
  to: number;
  ticks: readonly (readonly [at: number, label: string])[];
}

export const WIDTH = 860;
export const HEIGHT = 168;
export const LEFT = 56;
export const RIGHT = 24;
const TOP = 24;
const BOTTOM = 22;
/** On a narrow screen, where a wide one's letters would be too small to read. */
const NARROW = 400;
/** Points drawn at most in a width: longer runs are averaged. */
const POINTS_PER_WIDTH = 0.5;

export function plotSvg(plot: Plot, durationS: number): string {
  return bothWidths(plot, secondsAxis(durationS), secondsAxis(durationS, 2));
}

/** Twice, for a wide and for a narrow screen: the style sheet shows one of them. */
export function bothWidths(plot: Plot, wide: Axis, narrow: Axis): string {
  const label = escaped(`${plot.title}, ${plot.unit}`);
  const drawn = [
    { style: 'wide', width: WIDTH, axis: wide },
    { style: 'narrow', width: NARROW, axis: narrow },
  ].map(
    ({ style, width, axis }) =>
      `<svg class="${style}" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${label}">
${plotted(plot, axis, width)}
</svg>`,
  );
  return drawn.join('\n');
}

/** Seconds, with a tick at each 20, 30 or 60 of them, or a multiple. */
export function secondsAxis(to: number, sparse = 1): Axis {
  const step = sparse * (to > 300 ? 60 : to > 120 ? 30 : 20);
  const ticks = Array.from({ length: Math.floor(to / step) + 1 }, (_, i) => i * step);
  return { to, ticks: ticks.map((s) => [s, `${s} s`] as const) };
}

/** What stands within the frame of one plot, of `HEIGHT`. */
export function plotted(plot: Plot, axis: Axis, width = WIDTH): string {
  const values = plot.lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const highest = Math.max(1e-9, plot.objective ?? 0, ...chunked(values));
  const top = niceAbove(Math.min(highest, plot.most ?? highest));
  const x = (s: number) => LEFT + (s / axis.to) * (width - LEFT - RIGHT);
  const y = (v: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(1, v / top));
  const shades = (plot.shaded ?? []).map(
    ([from, to]) =>
      `<rect class="open" x="${at(x(from))}" y="${TOP}" width="${at(x(to) - x(from))}" height="${HEIGHT - TOP - BOTTOM}"/>`,
  );
  const marks = (plot.marks ?? []).map(
    (s) =>
      `<line class="mark" x1="${at(x(s))}" x2="${at(x(s))}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>`,
  );
  const grid = [0, top / 2, top].map(
    (v) =>
      `<line class="grid" x1="${LEFT}" x2="${width - RIGHT}" y1="${at(y(v))}" y2="${at(y(v))}"/>` +
      `<text class="tick end" x="${LEFT - 6}" y="${at(y(v) + 4)}">${Number(v.toPrecision(3))}</text>`,
  );
  const ticks = axis.ticks.map(
    ([s, label]) =>
      `<text class="tick mid" x="${at(x(s))}" y="${HEIGHT - 6}">${escaped(label)}</text>`,
  );
  const objective =
    plot.objective === undefined
      ? ''
      : `<line class="objective" x1="${LEFT}" x2="${width - RIGHT}" y1="${at(y(plot.objective))}" y2="${at(y(plot.objective))}"/>`;
  const lines = plot.lines.map(
    ({ style, values }) =>
      `<path class="line ${escaped(style)}" d="${path(values, POINTS_PER_WIDTH * width, x, y)}"/>`,
  );
  return `<text class="title" x="${LEFT}" y="14">${escaped(plot.title)} <tspan class="unit">${escaped(plot.unit)}</tspan></text>
${[...shades, ...grid, ...marks, objective, ...lines, ...ticks].join('\n')}`;
}

function path(
  values: readonly (number | null)[],
  points: number,
  x: (s: number) => number,
  y: (v: number) => number,
): string {
  const every = Math.max(1, Math.ceil(values.length / points));
  let drawn = '';
  let inRow = 0;
  // A value between two gaps makes no line: it is a dash.
  const ended = () => (inRow === 1 ? 'h1.6' : '');
  for (let s = 0; s < values.length; s += every) {
    const some = values.slice(s, s + every).filter((value) => value !== null);
    if (some.length === 0) {
      drawn += ended();
      inRow = 0;
      continue;
    }
    const mean = some.reduce((sum, value) => sum + value, 0) / some.length;
    drawn += `${inRow > 0 ? 'L' : 'M'}${at(x(s + every / 2))} ${at(y(mean))}`;
    inRow += 1;
  }
  return drawn + ended();
}

/** Means of three seconds: a single second must not set the scale. */
function chunked(values: readonly number[]): number[] {
  const means: number[] = [];
  for (let i = 0; i < values.length; i += 3) {
    const some = values.slice(i, i + 3);
    means.push(some.reduce((sum, value) => sum + value, 0) / some.length);
  }
  return means;
}

/** A round number a little above, whose half is round too. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10, 12]
      .map((step) => step * power)
      .find((step) => step >= value * 1.05) ?? value
  );
}

function at(value: number): string {
  return value.toFixed(1);
}
