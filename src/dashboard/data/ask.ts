/** An answer of the API for as long as a part of the page is shown: asked at once, again when told, and in turns. Stage: dashboard. */
import { useEffect, useState } from 'preact/hooks';
import { wordsOf } from './session.js';

export interface Asked<T> {
  /** The newest that came; stays while a later question fails. */
  value: T | null;
  fault: string | null;
  again: () => void;
}

/**
 * `key` says what is asked for: another one forgets the old answer; null asks nothing. `everyMs`: again and again
 * while the page is looked at.
 */
export function useAnswer<T>(
  key: string | null,
  ask: () => Promise<T>,
  everyMs?: number,
): Asked<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ key: string | null; value: T | null; fault: string | null }>(
    {
      key: null,
      value: null,
      fault: null,
    },
  );
  useEffect(() => {
    if (key === null) return;
    let wanted = true;
    ask().then(
      (value) => wanted && setState({ key, value, fault: null }),
      (error) =>
        wanted &&
        setState((old) => ({
          key,
          value: old.key === key ? old.value : null,
          fault: wordsOf(error),
        })),
    );
    return () => {
      wanted = false;
    };
  }, [key, turn]);
  useEffect(() => {
    if (everyMs === undefined || key === null) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setTurn((n) => n + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs]);
  const known = state.key === key;
  return {
    value: known ? state.value : null,
    fault: known ? state.fault : null,
    again: () => setTurn((n) => n + 1),
  };
}
