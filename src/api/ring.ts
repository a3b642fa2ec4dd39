/** The newest points of each limiter, kept in memory within a bound for all of them together. Stage: api. */
import type { SeriesPoint } from '../view/series.js';

export interface Ring {
  add(limiter: string, point: SeriesPoint): void;
  /** Those since then, oldest first. */
  since(limiter: string, fromMs: number): SeriesPoint[];
  forget(limiter: string): void;
}

/** At a second a point: a quarter of an hour. */
const MOST_OF_ONE = 900;
/** About 200 bytes each. */
const MOST_OF_ALL = 90_000;

export function createRing(mostOfOne = MOST_OF_ONE, mostOfAll = MOST_OF_ALL): Ring {
  const points = new Map<string, SeriesPoint[]>();

  return {
    add(limiter, point) {
      const own = points.get(limiter) ?? [];
      points.set(limiter, own);
      // Redis's clock was set back: what lies ahead of it is no past.
      while (own.length > 0 && own.at(-1)!.timeMs >= point.timeMs) own.pop();
      own.push(point);
      const most = Math.max(60, Math.min(mostOfOne, Math.floor(mostOfAll / points.size)));
      if (own.length > most) own.splice(0, own.length - most);
    },
    since(limiter, fromMs) {
      return (points.get(limiter) ?? []).filter(({ timeMs }) => timeMs >= fromMs);
    },
    forget(limiter) {
      points.delete(limiter);
    },
  };
}
