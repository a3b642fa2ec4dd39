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
  const most = POINTS_PER_WIDTH * width;
  const lines = plot.lines.map(({ style, values }) => ({ style, points: pointsOf(values, most) }));
  const drawn = lines.flatMap(({ points }) => points.map(({ value }) => value ?? 0));
  // Nothing that is drawn is cut off, but by `most`.
  const highest = drawn.reduce((high, value) => Math.max(high, value), plot.objective ?? 0);
  const top = niceAbove(Math.max(1e-9, Math.min(highest, plot.most ?? highest)));
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
  const paths = lines.map(
    ({ style, points }) => `<path class="line ${escaped(style)}" d="${path(points, x, y)}"/>`,
  );
  return `<text class="title" x="${LEFT}" y="14">${escaped(plot.title)} <tspan class="unit">${escaped(plot.unit)}</tspan></text>
${[...shades, ...grid, ...marks, objective, ...paths, ...ticks].join('\n')}`;
}

interface Point {
  s: number;
  value: number | null;
}

/** So many at most: of a longer run several make one, their mean. */
function pointsOf(values: readonly (number | null)[], most: number): Point[] {
  const every = Math.max(1, Math.ceil(values.length / most));
  return Array.from({ length: Math.ceil(values.length / every) }, (_, i) => {
    const some = values.slice(i * every, (i + 1) * every).filter((value) => value !== null);
    const sum = some.reduce((total, value) => total + value, 0);
    return { s: (i + 0.5) * every, value: some.length === 0 ? null : sum / some.length };
  });
}

function path(
  points: readonly Point[],
  x: (s: number) => number,
  y: (v: number) => number,
): string {
  let drawn = '';
  let inRow = 0;
  // A value between two gaps makes no line: it is a dash.
  const ended = () => (inRow === 1 ? 'm-3 0h6' : '');
  for (const { s, value } of points) {
    if (value === null) {
      drawn += ended();
      inRow = 0;
      continue;
    }
    drawn += `${inRow > 0 ? 'L' : 'M'}${at(x(s))} ${at(y(value))}`;
    inRow += 1;
  }
  return drawn + ended();
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
