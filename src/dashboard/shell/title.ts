/** The tab's title: what is wrong comes first, so that a row of tabs can be read. Stage: dashboard. */
import { useEffect } from 'preact/hooks';
import { outside } from '../parts/outside.jsx';

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = outside(title);
  }, [title]);
}
