/** The columns of `top`: what each says of a limiter, how wide it is, which goes first on a narrow screen; sparklines. Pure. Stage: cli. */
import { withUnit } from '../view/signal-unit.js';
import type { StatusView } from '../view/status.js';
import type { Colours } from './output.js';
import { clean, number, span } from './text.js';
import { deniedOf } from './top-model.js';

/** Between two columns. */
export const GAP = 2;

export interface Column {
  head: string;
  width: number;
  right?: true;
  /** The lowest goes first when the screen is narrow. */
  keep: number;
  text(view: StatusView, history: readonly number[], unicode: boolean): string;
  colour?(view: StatusView, c: Colours): (text: string) => string;
}

const COLUMNS: readonly Column[] = [
  { head: 'LIMITER', width: 14, keep: 9, text: ({ limiter }) => limiter },
  {
    ...{ head: 'BREAKER', width: 10, keep: 8 },
    text: ({ state, gliding }) => (state === null ? 'unmanaged' : gliding ? 'gliding' : state),
    colour: ({ state, gliding }, c) => {
      if (state === 'closed' && !gliding) return c.green;
      return state === 'open' || state === null ? c.red : c.yellow;
    },
  },
  { head: 'MODE', width: 9, keep: 3, text: ({ mode }) => mode ?? '' },
  {
    ...{ head: 'RATE/S', width: 17, keep: 8 },
    text: ({ inForce, bounds }) => of(inForce?.rate, bounds?.rate),
  },
  {
    ...{ head: 'IN FLIGHT', width: 10, keep: 7 },
    text: ({ traffic, inForce }) => {
      const cap = inForce?.inFlightMax;
      const now = traffic.inFlight === null ? '?' : number(Math.round(traffic.inFlight));
      if (cap === undefined) return '';
      return cap === null ? now : `${now} / ${number(Math.round(cap))}`;
    },
  },
  {
    ...{ head: 'OFFERED', width: 8, right: true, keep: 6 },
    text: ({ traffic }) => short(traffic.offeredPerSecond),
  },
  {
    ...{ head: 'ADMITTED', width: 8, right: true, keep: 4 },
    text: ({ traffic }) => short(traffic.admittedPerSecond),
  },
  {
    ...{ head: 'DENIED', width: 7, right: true, keep: 7 },
    text: (view) => short(deniedOf(view)),
    colour: (view, c) => (deniedOf(view) > 0 ? c.yellow : (text) => text),
  },
  {
    ...{ head: 'OFFERED BEFORE', width: 24, keep: 2 },
    text: (_view, history, unicode) => sparkline(history, unicode),
    colour: (_view, c) => c.cyan,
  },
  {
    ...{ head: 'WORST SIGNAL', width: 26, keep: 5 },
    text: ({ worst }) =>
      worst === null
        ? ''
        : `${clean(worst.signal)} ${withUnit(worst.value, worst.unit)} ${times(worst.ratio)}`,
    colour: ({ worst }, c) => ((worst?.ratio ?? 0) > 1 ? c.yellow : (text) => text),
  },
  {
    ...{ head: 'HOLD', width: 22, keep: 6 },
    text: ({ holds }) =>
      holds
        .map(({ kind, leftMs }) => (leftMs === null ? kind : `${kind} ${span(leftMs)}`))
        .join(', '),
    colour: (_view, c) => c.cyan,
  },
];

/** The columns of the table where nothing was seen before. */
const STILL = COLUMNS.filter(({ head }) => head !== 'OFFERED BEFORE');

export function tableHead(): string[] {
  return STILL.map(({ head }) => head);
}

export function tableRow(view: StatusView, c: Colours): string[] {
  return STILL.map(({ text, colour }) => {
    const plain = clean(text(view, [], false));
    return colour ? colour(view, c)(plain) : plain;
  });
}

/** Those that fit, in their order; the limiter's name takes what is left, up to 40. */
export function columnsFor(width: number): Column[] {
  const kept = new Set<Column>();
  let used = -GAP;
  for (const column of [...COLUMNS].sort((a, b) => b.keep - a.keep)) {
    if (used + GAP + column.width > width && kept.size > 0) continue;
    kept.add(column);
    used += GAP + column.width;
  }
  const spare = Math.max(0, Math.min(26, width - used));
  return COLUMNS.filter((one) => kept.has(one)).map((one, i) =>
    i === 0 ? { ...one, width: Math.min(one.width + spare, width) } : one,
  );
}

const BLOCKS = '▁▂▃▄▅▆▇█';
const ASCII = '_.-:=+*#';

/** The newest stands to the right; the highest is a full block, so that shapes can be told, not sizes. */
export function sparkline(values: readonly number[], unicode: boolean): string {
  const marks = unicode ? BLOCKS : ASCII;
  const most = Math.max(...values, 0);
  return values
    .map((value) => marks[most <= 0 ? 0 : Math.min(7, Math.round((value / most) * 7))])
    .join('');
}

function of(rate: number | undefined, bounds: [number, number] | undefined): string {
  if (rate === undefined) return '';
  const plain = short(rate);
  return bounds && bounds[0] !== bounds[1]
    ? `${plain} of ${short(bounds[0])}-${short(bounds[1])}`
    : plain;
}

function short(value: number): string {
  return number(Number(value.toPrecision(3)));
}

function times(ratio: number): string {
  return `×${number(Math.round(ratio * 100) / 100)}`;
}

export function fitted(text: string, { width, right }: Column): string {
  const plain = cut(clean(text), width);
  const pad = ' '.repeat(width - [...plain].length);
  return right ? pad + plain : plain + pad;
}

export function cut(text: string, width: number): string {
  const chars = [...text];
  return chars.length <= width ? text : chars.slice(0, Math.max(0, width)).join('');
}
