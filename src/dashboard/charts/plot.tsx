/** One chart on a canvas: lines over time, what is shaded behind them, the value under the cursor. Stage: dashboard. */
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { ceilingOf, type Gap, type Span } from './series.js';

export interface Line {
  name: string;
  /** A variable of the style sheet: `--line-rate`. */
  colour: string;
  values: readonly (number | null)[];
  dashed?: boolean;
  /** The value holds until the next point. */
  stepped?: boolean;
  thin?: boolean;
}

export interface PlotProps {
  timeMs: readonly number[];
  fromMs: number;
  toMs: number;
  lines: readonly Line[];
  /** Shaded: the bounds of a line. */
  band?: readonly [number, number] | null;
  states: readonly Span[];
  /** Hatched: nothing was recorded. */
  gaps: readonly Gap[];
  marksMs: readonly number[];
  say: (value: number) => string;
  height?: number;
  onCursor?: (index: number | null) => void;
}

/** Left of every plot, so that charts below each other share one time axis. */
const AXIS_PX = 58;
const RIGHT_PX = 20;
/** Of a time with seconds. */
const HALF_LABEL_PX = 28;
const SHADES = {
  open: '--shade-open',
  'half-open': '--shade-probing',
  recovering: '--shade-recovering',
};

const colourOf = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Plot(props: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(props);
  newest.current = props;
  const theme = useThemeTurns();
  const shape = props.lines
    .map(({ name, dashed, stepped }) => `${name}${dashed}${stepped}`)
    .join('|');

  useEffect(() => {
    const box = place.current!;
    const made = new uPlot(optionsOf(newest, box.clientWidth), dataOf(newest.current), box);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      const width = box.clientWidth;
      if (width > 0 && width !== made.width) made.setSize({ width, height: made.height });
    });
    observer.observe(box);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [shape, theme]);

  useEffect(() => {
    plot.current?.setData(dataOf(props));
  });
  return <div class="plot" ref={place} aria-hidden="true" />;
}

function dataOf({ timeMs, lines }: PlotProps): uPlot.AlignedData {
  return [timeMs.map((ms) => ms / 1000), ...lines.map((line) => [...line.values])];
}

function optionsOf(of: { current: PlotProps }, width: number): uPlot.Options {
  const soft = colourOf('--soft');
  const rule = colourOf('--rule');
  const font = '12px system-ui, sans-serif';
  const axis = {
    stroke: soft,
    font,
    grid: { stroke: rule, width: 1 },
    ticks: { stroke: rule, width: 1, size: 4 },
  };
  return {
    width: Math.max(width, 100),
    height: of.current.height ?? 180,
    padding: [8, RIGHT_PX, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: 'time' } },
    scales: {
      x: { time: true, range: () => [of.current.fromMs / 1000, of.current.toMs / 1000] },
      y: { range: () => [0, ceilingOf(of.current.lines.map((line) => line.values))] },
    },
    axes: [
      { ...axis, size: 26, space: 70, incrs: STEPS_S, values: clocks },
      {
        ...axis,
        size: AXIS_PX,
        gap: 4,
        space: 34,
        values: (_u, splits) => splits.map((n) => of.current.say(n)),
      },
    ],
    series: [
      {},
      ...of.current.lines.map(
        (line): uPlot.Series => ({
          label: line.name,
          stroke: colourOf(line.colour),
          width: line.thin ? 1 : 1.75,
          dash: line.dashed ? [6, 4] : [],
          spanGaps: false,
          // A value between two gaps makes no line.
          points: { show: false, filter: (u, i) => alone(u.data[i]!), size: 4 },
          ...(line.stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
        }),
      ),
    ],
    hooks: {
      drawClear: [(u) => shade(u, of.current)],
      draw: [(u) => mark(u, of.current)],
      setCursor: [(u) => of.current.onCursor?.(u.cursor.idx ?? null)],
    },
  };
}

function alone(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
  }
  return found;
}

/** Between two labels; close to each other, so that a narrow chart has some. */
const STEPS_S = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900],
  ...[1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400],
];

/** With seconds where minutes would repeat. What would not fit at the right is left out. */
function clocks(u: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  const two = (n: number) => String(n).padStart(2, '0');
  return splits.map((seconds) => {
    const d = new Date(seconds * 1000);
    const minutes = `${two(d.getHours())}:${two(d.getMinutes())}`;
    if (step >= 60) return minutes;
    const room = u.bbox.width / devicePixelRatio + RIGHT_PX - u.valToPos(seconds, 'x');
    return room < HALF_LABEL_PX ? '' : `${minutes}:${two(d.getSeconds())}`;
  });
}

/** Behind the lines: the bounds, the times in which the breaker was not closed, and those of which nothing is known. */
function shade(u: uPlot, { states, gaps, band }: PlotProps): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  if (band) {
    const [low, high] = band.map((value) => u.valToPos(value, 'y', true)) as [number, number];
    const top = Math.max(bbox.top - 1, high);
    ctx.fillStyle = colourOf('--band');
    ctx.fillRect(bbox.left, top, bbox.width, Math.min(low, bbox.top + bbox.height) - top);
  }
  for (const { state, fromMs, toMs } of states) {
    if (state === 'closed') continue;
    const left = u.valToPos(fromMs / 1000, 'x', true);
    const right = u.valToPos(toMs / 1000, 'x', true);
    ctx.fillStyle = colourOf(SHADES[state]);
    ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
  }
  for (const gap of gaps) hatch(u, gap);
  ctx.restore();
}

const HATCH_PX = 8;

function hatch(u: uPlot, { fromMs, toMs }: Gap): void {
  const { ctx, bbox } = u;
  const left = u.valToPos(fromMs / 1000, 'x', true);
  const width = u.valToPos(toMs / 1000, 'x', true) - left;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, bbox.top, width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colourOf('--sunk');
  ctx.fillRect(left, bbox.top, width, bbox.height);
  ctx.strokeStyle = colourOf('--rule');
  ctx.beginPath();
  for (let x = left - bbox.height; x < left + width; x += HATCH_PX) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

/** Over the lines: a thin upright where something was changed. */
function mark(u: uPlot, { marksMs }: PlotProps): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = colourOf('--edge');
  ctx.setLineDash([2, 3]);
  for (const ms of marksMs) {
    const x = Math.round(u.valToPos(ms / 1000, 'x', true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** A number that grows whenever the colours become others. */
function useThemeTurns(): number {
  const [turns, setTurns] = useState(0);
  useEffect(() => {
    const turn = () => setTurns((n) => n + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', turn);
    const observer = new MutationObserver(turn);
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', turn);
      observer.disconnect();
    };
  }, []);
  return turns;
}
