/** The words that a list is searched by: they stand in the box at once, and are looked for when no key follows, so that none waits for a long list. Stage: dashboard. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Search {
  /** As it stands in the box. */
  typed: () => string;
  /** As the list is drawn. */
  shown: string;
  type: (text: string) => void;
  /** What stands in the box, for who goes on with it: nothing is drawn for it any more. */
  take: () => string;
  /** At once: from elsewhere than the box. */
  set: (text: string) => void;
}

/** Nobody types so fast by hand: each key of a person is answered. */
const STILL_MS = 50;

export function useSearch(first: string): Search {
  const [shown, setShown] = useState(first);
  const typed = useRef(first);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const set = (text: string) => {
    clearTimeout(timer.current);
    typed.current = text;
    setShown(text);
  };
  useLayoutEffect(() => () => clearTimeout(timer.current), []);
  return {
    typed: () => typed.current,
    shown,
    type(text) {
      typed.current = text;
      clearTimeout(timer.current);
      timer.current = setTimeout(() => set(text), STILL_MS);
    },
    take() {
      clearTimeout(timer.current);
      return typed.current;
    },
    set,
  };
}
