/** Answers and time of each route of this process: what tells a change of what is asked for from congestion. Stage: enforce. */

/** Routes told apart, for the life of the process: those that are asked for first, so mostly the busy ones. */
const MOST = 8;
const OTHER = 'other';

export interface RouteTimes {
  add(route: string, ms: number): void;
  /** Nothing while there was never more than one route: then there is no mix. */
  each(visit: (route: string, count: number, sumMs: number) => void): void;
  clear(): void;
}

export function createRouteTimes(): RouteTimes {
  const routes = new Map<string, { count: number; sumMs: number }>();
  return {
    add(route, ms) {
      let times = routes.get(route);
      if (times === undefined) {
        const name = routes.size < MOST ? route : OTHER;
        times = routes.get(name);
        if (times === undefined) {
          times = { count: 0, sumMs: 0 };
          routes.set(name, times);
        }
      }
      times.count += 1;
      times.sumMs += ms;
    },
    each(visit) {
      if (routes.size < 2) return;
      for (const [route, { count, sumMs }] of routes) if (count > 0) visit(route, count, sumMs);
    },
    clear() {
      for (const times of routes.values()) times.count = times.sumMs = 0;
    },
  };
}
