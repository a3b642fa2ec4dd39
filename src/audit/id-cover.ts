/** Ids of exported entries, which no hash of the chain covers: a head carries a digest of those since the head before it. Stage: audit. */
import { createHash, type Hash } from 'node:crypto';

/** Kept alike by who exports and by who verifies. */
export interface IdCover {
  /** The log of a limiter begins: its first head covers all of it. Otherwise a head covers nothing until it has a head before it. */
  begin(limiter: string): void;
  add(limiter: string, id: string): void;
  /** At a head: the digest of what was added since the head before it; undefined: nothing, or it is not known. */
  take(limiter: string): string | undefined;
  /** Nothing is known any more, of one limiter or of all. */
  forget(limiter?: string): void;
}

export function createIdCover(): IdCover {
  const since = new Map<string, { hash: Hash; count: number }>();
  const begin = (limiter: string) => {
    since.set(limiter, { hash: createHash('sha256'), count: 0 });
  };
  return {
    begin,
    add(limiter, id) {
      const known = since.get(limiter);
      if (known === undefined) return;
      known.hash.update(`${id}\n`);
      known.count++;
    },
    take(limiter) {
      const known = since.get(limiter);
      begin(limiter);
      return known === undefined || known.count === 0 ? undefined : known.hash.digest('hex');
    },
    forget(limiter) {
      if (limiter === undefined) since.clear();
      else since.delete(limiter);
    },
  };
}
