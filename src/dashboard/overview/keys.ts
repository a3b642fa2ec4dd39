/** The overview's keys: `/` search, `j` and `k` through the rows, Enter opens. Stage: dashboard. */
import { useEffect } from 'preact/hooks';

export interface OverviewKeys {
  search: () => void;
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
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      // A link or button in focus has its own Enter.
      const own = (event.target as HTMLElement | null)?.closest('a, button, summary') != null;
      if (event.key === '/') keys.search();
      else if (event.key === 'j') keys.move(1);
      else if (event.key === 'k') keys.move(-1);
      else if (event.key === 'Enter' && !own) keys.open();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}
