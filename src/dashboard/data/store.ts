/** What the page knows, and who wants to hear of changes; written by the stream and the session alone. Stage: dashboard. */
import { useEffect, useReducer } from 'preact/hooks';
import type { AuditRecord, LimiterPoint, SessionAnswer } from '../../api/types.js';
import type { StatusView } from '../../view/status.js';
import { type Heard, redisNow } from './freshness.js';

export type Connection =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** Waits for the next try; monotonic ms. */
  | { kind: 'waiting'; retryAtMs: number };

export interface State {
  /** null: not asked yet. */
  session: SessionAnswer | null;
  /** Of a session that could not be asked for. */
  sessionFault: string | null;
  connection: Connection;
  /** How often the stream was lost and came back: what it told of in between must be asked for. */
  rejoins: number;
  heard: Heard | null;
  rows: ReadonlyMap<string, StatusView>;
  /** New since the page was opened, newest first. */
  entries: readonly AuditRecord[];
}

const ENTRIES = 200;

let state: State = {
  session: null,
  sessionFault: null,
  connection: { kind: 'connecting' },
  rejoins: 0,
  heard: null,
  rows: new Map(),
  entries: [],
};
const listeners = new Set<() => void>();
const pointListeners = new Set<(points: readonly LimiterPoint[]) => void>();

export function current(): State {
  return state;
}

export function update(part: Partial<State>): void {
  state = { ...state, ...part };
  for (const listener of [...listeners]) listener();
}

export function addEntries(entries: readonly AuditRecord[]): void {
  update({ entries: [...[...entries].reverse(), ...state.entries].slice(0, ENTRIES) });
}

/** Redis's time, ms. */
export function nowMs(): number {
  return redisNow(state.heard, performance.now(), Date.now());
}

export function tellPoints(points: readonly LimiterPoint[]): void {
  for (const listener of [...pointListeners]) listener(points);
}

export function onPoints(listener: (points: readonly LimiterPoint[]) => void): () => void {
  pointListeners.add(listener);
  return () => pointListeners.delete(listener);
}

/** Draws the component again when the store changes. */
export function useStore(): State {
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  useEffect(() => {
    const listener = () => again();
    listeners.add(listener);
    // What changed between the first drawing and now.
    listener();
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return state;
}

/** Draws it again each second: for ages and countdowns. */
export function useSeconds(): number {
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => again(), 1000);
    return () => clearInterval(timer);
  }, []);
  return nowMs();
}

/** May this caller change things? */
export function mayWrite({ session }: State): boolean {
  return session?.role === 'operator' || session?.role === 'admin';
}

/** May this caller say what is adopted? */
export function mayApply({ session }: State): boolean {
  return session?.role === 'admin';
}
