/** The live table of `top` as lines of a screen: columns that fit, sparklines, the question or the keys below. Pure. Stage: cli. */
import type { Colours } from './output.js';
import { clean, clockTime } from './text.js';
import { columnsFor, cut, fitted, GAP } from './top-columns.js';
import { rowsOf, type TopModel } from './top-model.js';

export interface Page {
  columns: number;
  rows: number;
  c: Colours;
  /** Blocks and a pointer beyond ASCII. */
  unicode: boolean;
}

const KEYS =
  'p pin  f freeze/thaw  l release  t trip/reset  b roll back  / search  s sort  ? help  q quit';

/** As many lines as the screen has, none longer than it is wide. */
export function draw(model: TopModel, page: Page): string[] {
  const { columns, rows } = page;
  if (columns < 40 || rows < 6)
    return fill([cut('flyball top: make the window larger; q quits', columns)], rows);
  const foot = footOf(model, page);
  const room = Math.max(1, rows - 2 - foot.length);
  const body = model.help ? HELP.map((line) => cut(line, columns)) : tableOf(model, page, room);
  return [...fill([titleOf(model, page), '', ...body], rows - foot.length), ...foot].slice(0, rows);
}

/** Rows of the table that a screen of so many lines has. */
export function pageRows(rows: number): number {
  return Math.max(1, rows - 5);
}

function titleOf(model: TopModel, { columns, c }: Page): string {
  const { views, atMs, away, filter, searching, order } = model;
  const count = `${views.length} limiter${views.length === 1 ? '' : 's'}`;
  const when = atMs === 0 ? 'reading …' : clockTime(atMs);
  const search = searching || filter !== '' ? `  /${clean(filter)}${searching ? '_' : ''}` : '';
  const text = `flyball top  ${when}  ${count}  by ${order}${search}`;
  if (away === null) return c.bold(cut(text, columns));
  const since = atMs === 0 ? '' : ` shown: ${clockTime(atMs)}.`;
  return c.red(cut(`Redis does not answer:${since} Trying again. ${clean(away)}`, columns));
}

function tableOf(model: TopModel, page: Page, room: number): string[] {
  const { columns, c, unicode } = page;
  const rows = rowsOf(model);
  if (rows.length === 0) {
    const none =
      model.filter === ''
        ? 'No limiter is known. flyball run adopts policies and registers them.'
        : 'No limiter has this in its name. Escape shows all.';
    return [cut(model.atMs === 0 ? '' : none, columns)];
  }
  const shown = columnsFor(columns - 2);
  const head = shown.map((one) => fitted(one.head, one)).join(' '.repeat(GAP));
  const at = rows.findIndex(({ limiter }) => limiter === model.cursor);
  const most = room - 1;
  const first = Math.max(0, Math.min(at - Math.floor(most / 2), rows.length - most));
  const lines = rows.slice(first, first + most).map((view) => {
    const here = view.limiter === model.cursor;
    const cells = shown.map((one) => {
      const before = model.history.get(view.limiter) ?? [];
      const text = fitted(one.text(view, before, unicode), one);
      return one.colour && !here ? one.colour(view, c)(text) : text;
    });
    const line = `${here ? (unicode ? '▸' : '>') : ' '} ${cells.join(' '.repeat(GAP))}`;
    return here ? c.inverse(line) : model.away === null ? line : c.dim(line);
  });
  return [c.dim(`  ${head}`), ...lines];
}

function footOf(model: TopModel, { columns, c, rows }: Page): string[] {
  const { question, message } = model;
  if (question === null) {
    const said = message === '' ? [] : [cut(clean(message), columns)];
    return [...said, c.dim(cut(KEYS, columns))];
  }
  const most = Math.max(0, rows - 6);
  const lines = question.lines.slice(0, most).map((line) => cut(clean(line), columns));
  return [...lines, c.bold(cut(`${clean(question.label)} ${clean(question.typed)}_`, columns))];
}

const HELP = [
  'Rate and cap are what is in force now; a rate is shown with its bounds. Offered, admitted and denied are',
  'per second, over the last 5 s. The worst signal is the one furthest from its setpoint: × 1 is on it.',
  '',
  '  up, down, j, k      choose a limiter (page up and down, g, G)',
  '  /                   only names with this in them; enter keeps it, escape shows all',
  '  s                   order by name, offered, denied, worst signal',
  '  p                   pin: your rate and cap, held for 1 h',
  '  f                   freeze what is in force for 1 h; thaw what is frozen',
  '  l                   release a pin or a rollback',
  '  t                   trip: nothing passes; reset an open breaker',
  '  b                   roll back to an older revision, held for 1 h',
  '  ctrl-l, ctrl-z      draw anew; back to the shell (fg returns)',
  '  q, ctrl-c           quit',
  '',
  'Each change shows now and then, and asks. It is one audit entry in your name: flyball audit <limiter>.',
  'Any key goes back to the table.',
];

function fill(lines: readonly string[], rows: number): string[] {
  return Array.from({ length: rows }, (_, i) => lines[i] ?? '');
}
