/** What the live table of `top` shows, and what a key does to it: cursor, search, order, help, a question. Pure. Stage: cli. */
import type { StatusView } from '../view/status.js';
import type { Key } from './top-keys.js';

export const ORDERS = ['name', 'offered', 'denied', 'worst'] as const;
export type Order = (typeof ORDERS)[number];

export interface Question {
  label: string;
  /** Stands above it: what would change. */
  lines: readonly string[];
  typed: string;
}

export interface TopModel {
  views: readonly StatusView[];
  /** Requests offered per second at the looks before, oldest first. */
  history: ReadonlyMap<string, readonly number[]>;
  /** Redis ms of the newest look; 0: none has ended. */
  atMs: number;
  /** Why the newest look failed; null: it did not. */
  away: string | null;
  /** Name of the limiter under the cursor. */
  cursor: string | null;
  filter: string;
  order: Order;
  help: boolean;
  /** The filter is being typed. */
  searching: boolean;
  question: Question | null;
  /** What came of the last verb. */
  message: string;
}

/** Looks that a sparkline shows. */
export const LOOKS = 24;

export function emptyModel(): TopModel {
  return {
    ...{ views: [], history: new Map(), atMs: 0, away: null, cursor: null, filter: '' },
    ...{ order: 'name', help: false, searching: false, question: null, message: '' },
  };
}

export function looked(model: TopModel, views: readonly StatusView[], atMs: number): TopModel {
  const history = new Map(
    views.map((view) => {
      const before = model.history.get(view.limiter) ?? [];
      return [view.limiter, [...before, view.traffic.offeredPerSecond].slice(-LOOKS)];
    }),
  );
  return steadied({ ...model, views, history, atMs, away: null });
}

/** The rows that pass the filter, in order. */
export function rowsOf({ views, filter, order }: TopModel): StatusView[] {
  const wanted = filter.toLowerCase();
  const shown = views.filter(({ limiter }) => limiter.includes(wanted));
  const by: Record<Order, (view: StatusView) => number> = {
    name: () => 0,
    offered: ({ traffic }) => -traffic.offeredPerSecond,
    denied: (view) => -deniedOf(view),
    worst: ({ worst }) => -(worst?.ratio ?? 0),
  };
  const name = (a: StatusView, b: StatusView) => (a.limiter < b.limiter ? -1 : 1);
  return shown.sort((a, b) => by[order](a) - by[order](b) || name(a, b));
}

/** Denied per second; in shadow what would be. */
export function deniedOf({ traffic, mode }: StatusView): number {
  const by = mode === 'shadow' ? traffic.wouldDenyPerSecond : traffic.deniedPerSecond;
  return Object.values(by).reduce((sum, n) => sum + n, 0);
}

/** The cursor stays on its limiter; when that is gone, on the first. */
function steadied(model: TopModel): TopModel {
  const rows = rowsOf(model);
  if (rows.some(({ limiter }) => limiter === model.cursor)) return model;
  return { ...model, cursor: rows[0]?.limiter ?? null };
}

/** What a key asks of the outside: to end, to draw anew, or a verb for the limiter under the cursor. */
export type Wish = 'quit' | 'redraw' | 'stop' | 'pin' | 'freeze' | 'release' | 'trip' | 'rollback';

const VERBS: Readonly<Record<string, Wish>> = {
  p: 'pin',
  f: 'freeze',
  l: 'release',
  t: 'trip',
  b: 'rollback',
};

/** A key while no question is open. `page`: rows that fit. */
export function pressed(model: TopModel, key: Key, page: number): [TopModel, Wish | null] {
  if (key === 'ctrl-c') return [model, 'quit'];
  if (key === 'ctrl-z') return [model, 'stop'];
  if (key === 'ctrl-l') return [model, 'redraw'];
  if (model.searching) return [searched(model, key), null];
  if (model.help) return [{ ...model, help: false }, key === 'q' ? 'quit' : null];
  const quiet = { ...model, message: '' };
  switch (key) {
    case 'q':
      return [model, 'quit'];
    case '?':
    case 'h':
      return [{ ...quiet, help: true }, null];
    case '/':
      return [{ ...quiet, searching: true }, null];
    case 'escape':
      return [steadied({ ...quiet, filter: '' }), null];
    case 's': {
      const next = ORDERS[(ORDERS.indexOf(model.order) + 1) % ORDERS.length]!;
      return [{ ...quiet, order: next }, null];
    }
    case 'down':
    case 'j':
      return [moved(quiet, 1), null];
    case 'up':
    case 'k':
      return [moved(quiet, -1), null];
    case 'page-down':
      return [moved(quiet, page), null];
    case 'page-up':
      return [moved(quiet, -page), null];
    case 'home':
    case 'g':
      return [moved(quiet, Number.NEGATIVE_INFINITY), null];
    case 'end':
    case 'G':
      return [moved(quiet, Number.POSITIVE_INFINITY), null];
  }
  const verb = VERBS[key];
  return [quiet, verb !== undefined && model.cursor !== null ? verb : null];
}

function moved(model: TopModel, by: number): TopModel {
  const rows = rowsOf(model);
  const at = rows.findIndex(({ limiter }) => limiter === model.cursor);
  const to = Math.min(rows.length - 1, Math.max(0, Math.max(0, at) + by));
  return { ...model, cursor: rows[to]?.limiter ?? null };
}

function searched(model: TopModel, key: Key): TopModel {
  if (key === 'enter') return { ...model, searching: false };
  if (key === 'escape') return steadied({ ...model, searching: false, filter: '' });
  return steadied({ ...model, filter: edited(model.filter, key) });
}

/** A line that is typed: no more than a terminal shows. */
export function edited(text: string, key: Key): string {
  if (key === 'backspace' || key === 'delete') return [...text].slice(0, -1).join('');
  if (key === 'ctrl-u') return '';
  return [...key].length === 1 && text.length < 200 ? text + key : text;
}
