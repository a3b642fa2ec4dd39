/** The overview's keys: `/` search, Escape clears it, `j` and `k` through the rows, Enter opens. Stage: dashboard. */
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface OverviewKeys {
  search: () => void;
  clear: () => void;
  move: (by: number) => void;
  open: () => void;
}

/** Where letters are text, or a dialog stands in front, they are no commands. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  if (document.querySelector('dialog[open]') !== null) return true;
  const target = event.target as HTMLElement | null;
  return target?.closest('input, textarea, select, [contenteditable]') != null;
}

export function useOverviewKeys(keys: OverviewKeys): void {
  // Read when a key is pressed: an effect a frame later would open the row that was chosen before.
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      // A link or button in focus has its own Enter.
      const own = (event.target as HTMLElement | null)?.closest('a, button, summary') != null;
      if (event.key === '/') latest.current.search();
      else if (event.key === 'Escape') latest.current.clear();
      else if (event.key === 'j') latest.current.move(1);
      else if (event.key === 'k') latest.current.move(-1);
      else if (event.key === 'Enter' && !own) latest.current.open();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}
