/** What turns saw last, until somebody looks: gauges are set for a scrape, not at each tick of a thousand limiters. Stage: report. */

/** In this order they are shown: of who lost the lease, what only a leader tells is taken back. */
const KINDS = ['inForce', 'sample', 'decision', 'lease'] as const;

export interface LastSeen {
  /** `show` sets the gauges from what that turn saw; a later one of the same kind takes its place. */
  keep(kind: (typeof KINDS)[number], limiter: string, show: () => void): void;
  /** Shows all that was kept since it was last shown. */
  show(): void;
}

export function createLastSeen(): LastSeen {
  const kept = KINDS.map(() => new Map<string, () => void>());
  return {
    keep(kind, limiter, show) {
      kept[KINDS.indexOf(kind)]!.set(limiter, show);
    },
    show() {
      for (const shows of kept) {
        for (const show of shows.values()) show();
        shows.clear();
      }
    },
  };
}
