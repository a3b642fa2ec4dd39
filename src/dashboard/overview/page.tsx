/** All limiters: what needs a person first, then the rest; found by a word, sorted by any column. Stage: dashboard. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { LEVELS, pageTitle } from '../data/attention.js';
import {
  matches,
  nextSort,
  parseSort,
  rowOf,
  type Sort,
  type SortBy,
  sorted,
  sortText,
} from '../data/rows.js';
import { useShown } from '../data/shown.js';
import { nowMs, useStore } from '../data/store.js';
import { Glyph } from '../parts/glyph.jsx';
import { limiterHash, overviewHash, type Route } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { useLastEpisodes } from './episodes.js';
import { useOverviewKeys } from './keys.js';
import { LimiterRow } from './row.jsx';
import { useSearch } from './search.js';
import { rowHeight, useVisibleRows } from './window.js';

const HEADS: readonly {
  by: SortBy;
  title: string;
  column: string;
  num?: boolean;
  wide?: boolean;
}[] = [
  { by: 'name', title: 'Limiter', column: 'col-name' },
  { by: 'state', title: 'State', column: 'col-state' },
  { by: 'rate', title: 'Rate', column: 'col-bar', num: true },
  { by: 'cap', title: 'Cap', column: 'col-bar', num: true },
  { by: 'offered', title: 'Offered', column: 'col-num', num: true },
  { by: 'admitted', title: 'Admitted', column: 'col-num', num: true, wide: true },
  { by: 'denied', title: 'Denied', column: 'col-num', num: true },
  { by: 'signal', title: 'Worst signal', column: 'col-signal', wide: true },
  { by: 'change', title: 'What happened last', column: '', wide: true },
];
const LEVEL_WORDS = {
  act: 'need you now',
  look: 'to look at',
  held: 'held by a person',
  well: 'well',
};

export function Overview({ route }: { route: Extract<Route, { page: 'overview' }> }) {
  const { rows: views, heard } = useStore();
  const { shown: search, typed, type, take, set: setSearch } = useSearch(route.search);
  const [sort, setSort] = useState<Sort>(parseSort(route.sort));
  const [chosen, setChosen] = useState<string | null>(null);
  const box = useRef<HTMLInputElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const now = nowMs();
  const all = useMemo(() => [...views.values()].map((view) => rowOf(view, now)), [views]);
  const inOrder = useMemo(() => sorted(all, sort), [all, sort]);
  const shown = useMemo(() => inOrder.filter((row) => matches(row, search)), [inOrder, search]);
  const told = useLastEpisodes(views.size);
  const range = useVisibleRows(body, shown.length);
  const inSight = shown.slice(range.from, range.to);
  useShown(inSight.map((row) => row.view.limiter));
  const wrong = all.filter((row) => row.attention.level === 'act');
  useTitle(
    pageTitle(
      'Limiters',
      wrong.map((row) => ({ name: row.view.limiter, words: row.attention.words })),
    ),
  );
  // Written before the next key: a frame later it would take the place of the address that Enter has gone to.
  useLayoutEffect(() => {
    history.replaceState(null, '', overviewHash(search, sortText(sort)));
  }, [search, sort]);
  // The address was changed by a link, or by the browser's back.
  useLayoutEffect(() => {
    setSearch(route.search);
    setSort(parseSort(route.sort));
  }, [route]);

  // Two keys may come before the page is drawn again: the second starts from where the first has led.
  const cursor = useRef<string | null>(null);
  const place = () => shown.findIndex((row) => row.view.limiter === cursor.current);
  const move = (by: number) => {
    const at = place();
    const next = Math.min(shown.length - 1, Math.max(0, at < 0 ? 0 : at + by));
    const row = shown[next];
    if (row === undefined) return;
    cursor.current = row.view.limiter;
    setChosen(cursor.current);
    bring(body.current, next);
  };
  const open = () => {
    const row = shown[place()];
    if (row !== undefined) location.hash = limiterHash(row.view.limiter);
  };
  useOverviewKeys({
    search: () => box.current?.focus(),
    clear: () => setSearch(''),
    move,
    open,
  });
  const onSearchKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      setSearch('');
      box.current?.blur();
    } else if (event.key === 'Enter') {
      const text = take();
      const first = inOrder.find((row) => matches(row, text));
      if (first === undefined) return;
      history.replaceState(null, '', overviewHash(text, sortText(sort)));
      location.hash = limiterHash(first.view.limiter);
    }
  };

  return (
    <>
      <div class="head">
        <h1>Limiters</h1>
        <p class="tally grow">
          {LEVELS.map((level) => {
            const count = all.filter((row) => row.attention.level === level).length;
            return count === 0 ? null : (
              <span key={level} class={`state ${level}`}>
                <Glyph shape={level} />
                {count} {level === 'act' && count === 1 ? 'needs you now' : LEVEL_WORDS[level]}
              </span>
            );
          })}
        </p>
      </div>
      {all.length > 0 && (
        <div class="tools">
          <input
            ref={box}
            type="search"
            aria-label="Find limiters"
            placeholder="Name, state, mode, hold…  ( / )"
            value={typed()}
            onInput={(event) => type(event.currentTarget.value)}
            onKeyDown={onSearchKey}
          />
          <button
            type="button"
            aria-pressed={sort.by === 'need'}
            onClick={() => setSort({ by: 'need', descending: false })}
          >
            What needs you first
          </button>
          <span class="soft small" role="status">
            {search === '' ? '' : `${shown.length} of ${all.length} found`}
          </span>
        </div>
      )}
      {shown.length === 0 ? (
        <Nothing known={heard !== null} any={all.length > 0} />
      ) : (
        <div class="sheet limiters">
          <table aria-rowcount={shown.length + 1}>
            <caption class="unseen">
              Limiters, with what is in force and what is asked of them
            </caption>
            <colgroup>
              {HEADS.map((head) => (
                <col key={head.by} class={`${head.column} ${head.wide ? 'wide' : ''}`} />
              ))}
            </colgroup>
            <thead>
              <tr aria-rowindex={1}>
                {HEADS.map((head) => (
                  <Head key={head.by} {...head} sort={sort} onSort={setSort} />
                ))}
              </tr>
            </thead>
            <tbody ref={body}>
              <Spacer rows={range.from} height={range.height} />
              {inSight.map((row, i) => (
                <LimiterRow
                  key={row.view.limiter}
                  row={row}
                  index={range.from + i}
                  chosen={row.view.limiter === chosen}
                  nowMs={now}
                  told={told.get(row.view.limiter)}
                />
              ))}
              <Spacer rows={Math.max(0, shown.length - range.to)} height={range.height} />
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

type HeadProps = (typeof HEADS)[number] & { sort: Sort; onSort: (sort: Sort) => void };

function Head({ by, title, num, wide, sort, onSort }: HeadProps) {
  const own = sort.by === by;
  const order = own ? (sort.descending ? 'descending' : 'ascending') : 'none';
  return (
    <th scope="col" class={`${num ? 'num' : ''} ${wide ? 'wide' : ''}`} aria-sort={order}>
      <button type="button" onClick={() => onSort(nextSort(sort, by))}>
        {title}
        {own && <span aria-hidden="true">{sort.descending ? '↓' : '↑'}</span>}
      </button>
    </th>
  );
}

function Spacer({ rows, height }: { rows: number; height: number }) {
  if (rows === 0) return null;
  return (
    <tr class="spacer" style={{ height: `${rows * height}px` }}>
      <td colSpan={HEADS.length} />
    </tr>
  );
}

function Nothing({ known, any }: { known: boolean; any: boolean }) {
  if (!known) return <p class="empty">Waiting for the first word of the daemon…</p>;
  if (any) return <p class="empty">No limiter matches. Escape clears the search.</p>;
  return (
    <div class="empty">
      <h2>No limiter yet</h2>
      <p>Nothing in this Redis is managed. A policy file makes a limiter, and it appears here:</p>
      <dl class="facts">
        <dt>
          <code>flyball init</code>
        </dt>
        <dd>writes a first policy</dd>
        <dt>
          <code>flyball run</code>
        </dt>
        <dd>adopts it, and moves its limits from then on</dd>
      </dl>
    </div>
  );
}

/** Scrolls so that this row is wholly in sight, below the head. */
function bring(body: HTMLElement | null, index: number): void {
  if (body === null) return;
  const height = rowHeight();
  const top = body.getBoundingClientRect().top + index * height;
  const room = 7 * 16;
  if (top < room) scrollBy(0, top - room);
  else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight);
}
