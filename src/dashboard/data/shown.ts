/** Tells the daemon which rows of many are in sight, so that it looks at these each time. Stage: dashboard. */
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../client.js';
import { current } from './store.js';

/** Well within the time that the daemon keeps it for. */
const AGAIN_MS = 4000;
/** Who scrolls by shows nothing yet. */
const STILL_MS = 250;

export function useShown(names: readonly string[]): void {
  const newest = useRef(names);
  newest.current = names;
  useEffect(() => {
    const say = () => {
      const { heard, connection } = current();
      // Of few limiters each is looked at each time anyhow.
      if (heard === null || heard.everyMs <= heard.lookMs) return;
      if (connection.kind !== 'live' || document.visibilityState !== 'visible') return;
      // Not heard, the rows come in their turn.
      api.shown(newest.current).catch(() => {});
    };
    const first = setTimeout(say, STILL_MS);
    const again = setInterval(say, AGAIN_MS);
    return () => {
      clearTimeout(first);
      clearInterval(again);
    };
  }, [names.join(' ')]);
}
