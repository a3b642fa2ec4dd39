/** The overview's rows: found, in order, and the numbers that stand in them. Pure. Stage: dashboard. */
import type { StatusView } from '../../view/status.js';
import { type Attention, LEVELS, worstAttention } from './attention.js';

export interface Row {
  view: StatusView;
  attention: Attention;
  deniedPerSecond: number;
}

export type SortBy =
  | 'need'
  | 'name'
  | 'state'
  | 'rate'
  | 'cap'
  | 'offered'
  | 'admitted'
  | 'denied'
  | 'signal'
  | 'change';
export interface Sort {
  by: SortBy;
  descending: boolean;
}

export const USUAL_SORT: Sort = { by: 'need', descending: false };
const NAMES: readonly SortBy[] = [
  'need',
  'name',
  'state',
  'rate',
  'cap',
  'offered',
  'admitted',
  'denied',
  'signal',
  'change',
];
const STATES = ['open', 'half-open', 'recovering', 'closed'];

export function rowOf(view: StatusView, nowMs: number): Row {
  return { view, attention: worstAttention(view, nowMs), deniedPerSecond: deniedOf(view) };
}

export function deniedOf(view: StatusView): number {
  return Object.values(view.traffic.deniedPerSecond).reduce((sum, n) => sum + n, 0);
}

/** Each word must be in the name, the group, the state, the mode, or in what stands out. */
export function matches(row: Row, search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return true;
  const { view, attention } = row;
  const holds = view.holds.map((hold) => `${hold.kind} ${hold.by}`).join(' ');
  const state = view.state ?? 'unmanaged';
  const text = `${view.limiter} ${view.group ?? ''} ${state} ${view.mode ?? ''} ${attention.words} ${holds}`;
  const low = text.toLowerCase();
  return words.every((word) => low.includes(word));
}

/** `-denied`: largest first. Anything else than a known name is the usual order. */
export function parseSort(text: string): Sort {
  const descending = text.startsWith('-');
  const by = NAMES.find((name) => name === text.replace(/^-/, ''));
  return by === undefined ? USUAL_SORT : { by, descending };
}

export function sortText({ by, descending }: Sort): string {
  if (by === 'need' && !descending) return '';
  return descending ? `-${by}` : by;
}

/** A click on a head: numbers begin with the largest, words with a; the same head again turns it round. */
export function nextSort(now: Sort, by: SortBy): Sort {
  if (now.by === by) return { by, descending: !now.descending };
  return { by, descending: !(by === 'name' || by === 'state' || by === 'need') };
}

/** Equal ones by name, so that rows do not jump. */
export function sorted(rows: readonly Row[], { by, descending }: Sort): Row[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const byKey = compare(keyOf(a, by), keyOf(b, by));
    return byKey !== 0 ? sign * byKey : compare(a.view.limiter, b.view.limiter);
  });
}

function keyOf(row: Row, by: SortBy): number | string {
  const { view } = row;
  const { traffic } = view;
  switch (by) {
    case 'need':
      return LEVELS.indexOf(row.attention.level);
    case 'name':
      return view.limiter;
    case 'state':
      return view.state === null ? -1 : STATES.indexOf(view.state);
    case 'rate':
      return view.inForce?.rate ?? -1;
    case 'cap':
      return view.inForce?.inFlightMax ?? -1;
    case 'offered':
      return traffic.offeredPerSecond;
    case 'admitted':
      return traffic.admittedPerSecond;
    case 'denied':
      return row.deniedPerSecond;
    case 'signal':
      return view.worst?.ratio ?? -1;
    case 'change':
      return view.lastChange?.atMs ?? -1;
  }
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The part of a list that a window onto it shows, with a few more on both sides. */
export function visibleRange(top: number, height: number, rowHeight: number, count: number) {
  const more = 8;
  const from = Math.max(0, Math.floor(top / rowHeight) - more);
  const to = Math.min(count, Math.ceil((top + height) / rowHeight) + more);
  return {
    from: Math.min(from, Math.max(0, count - 1)),
    to: Math.max(to, Math.min(count, from + 1)),
  };
}
