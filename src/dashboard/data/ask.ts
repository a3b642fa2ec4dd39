/** An answer of the API for as long as a part of the page is shown: asked at once, again when told, and in turns. Stage: dashboard. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Answered, type Asker, createAsker, NOT_ASKED } from './asker.js';

export interface Asked<T> extends Answered<T> {
  again: () => void;
}

export interface AskOptions {
  /** Another one asks again, and keeps the old answer until the new one is there: a revision, a window of time. */
  turn?: string;
  /** Again and again while the page is looked at. */
  everyMs?: number | undefined;
}

/** `about` says of what: another one forgets the old answer; null asks nothing. */
export function useAnswer<T>(
  about: string | null,
  ask: () => Promise<T>,
  { turn = '', everyMs }: AskOptions = {},
): Asked<T> {
  const [state, setState] = useState<{ about: string | null; answered: Answered<T> }>({
    about: null,
    answered: NOT_ASKED,
  });
  const newest = useRef({ ask, everyMs });
  newest.current = { ask, everyMs };
  const asker = useRef<Asker | null>(null);
  const asked = useRef(turn);
  useEffect(() => {
    if (about === null) return;
    asked.current = turn;
    const own = createAsker({
      ask: () => newest.current.ask(),
      everyMs: () => newest.current.everyMs,
      looked: () => document.visibilityState === 'visible',
      monotonicMs: () => performance.now(),
      say: (answered) => setState({ about, answered }),
    });
    asker.current = own;
    return () => {
      own.close();
      asker.current = null;
    };
  }, [about]);
  useEffect(() => {
    if (asked.current === turn) return;
    asked.current = turn;
    asker.current?.again();
  }, [turn]);
  const answered = state.about === about ? state.answered : NOT_ASKED;
  return { ...answered, again: () => asker.current?.again() };
}
