/** What this daemon stored in `:status` itself, of the limiters that are read next: it need not be read back. Stage: daemon, api. */
import type { LimiterStatus } from '../report/status.js';

export interface OwnStatuses {
  /** After it is stored. Kept only if it was asked for: of all limiters it would be much to hold for nobody. */
  tell(limiter: string, status: LimiterStatus): void;
  /** Those that are read next; of the others nothing is kept. */
  want(limiters: ReadonlySet<string>): void;
  /** null: this daemon stored none of late. */
  of(limiter: string): LimiterStatus | null;
}

export function createOwnStatuses(): OwnStatuses {
  let wanted: ReadonlySet<string> = new Set();
  const known = new Map<string, LimiterStatus>();
  return {
    tell(limiter, status) {
      if (wanted.has(limiter)) known.set(limiter, status);
    },
    want(limiters) {
      wanted = limiters;
      for (const name of known.keys()) if (!limiters.has(name)) known.delete(name);
    },
    of: (limiter) => known.get(limiter) ?? null,
  };
}
