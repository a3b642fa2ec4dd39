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

/** The range of rows of `body` that lies in the window, kept as it is scrolled and resized. */
export function useVisibleRows(body: RefObject<HTMLElement | null>, count: number) {
  const [range, setRange] = useState({ from: 0, to: Math.min(count, 40), height: rowHeight() });
  useEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const height = rowHeight();
      const next = { ...visibleRange(Math.max(0, -top), innerHeight, height, count), height };
      setRange((old) =>
        old.from === next.from && old.to === next.to && old.height === height ? old : next,
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
  }, [body, count]);
  return range;
}
