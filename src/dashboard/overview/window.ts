/** Which rows of a long table the browser's window shows; the rest is two spacers. Stage: dashboard. */
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { visibleRange } from '../data/rows.js';

const NARROW = '(max-width: 44rem)';
const ROW_REM = { wide: 3.25, narrow: 9 };

export function rowHeight(): number {
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
  return rem * (matchMedia(NARROW).matches ? ROW_REM.narrow : ROW_REM.wide);
}

/** The range of `count` rows of `body` that lies in the window, kept as it is scrolled and resized. */
export function useVisibleRows(body: RefObject<HTMLElement | null>, count: number) {
  const [seen, setSeen] = useState(() => ({ top: 0, room: innerHeight, height: rowHeight() }));
  useEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const height = rowHeight();
      const above = Math.max(0, -(body.current?.getBoundingClientRect().top ?? 0));
      // By whole rows: another part of the same row shows no other rows.
      const next = { top: Math.floor(above / height) * height, room: innerHeight, height };
      setSeen((old) =>
        old.top === next.top && old.room === next.room && old.height === height ? old : next,
      );
    };
    const soon = () => {
      if (frame === 0) frame = requestAnimationFrame(measure);
    };
    measure();
    addEventListener('scroll', soon, { passive: true });
    addEventListener('resize', soon);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener('scroll', soon);
      removeEventListener('resize', soon);
    };
  }, [body]);
  const { top, room, height } = seen;
  // The row that is half out at the top makes room for one at the end.
  return { ...visibleRange(top, room + height, height, count), height };
}
