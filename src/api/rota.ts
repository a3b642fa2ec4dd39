/** Whose turn it is to be looked at: of the channel of all some at a time, and each that has a channel of its own. Stage: api. */
import type { Watched } from './watched.js';

/** Limiters of one look: of 1,000 each is read every 4 s, so that a page costs a daemon little. */
const MOST_AT_ONCE = 250;

export interface Rota {
  /** So many looks until each had its turn. */
  readonly looks: number;
  /** For this look; the next is that of the others. */
  take(): Watched[];
  /** Names of those whose turn comes next. */
  next(): Set<string>;
}

/** `hears`: does anybody follow this channel? '' is that of all. */
export function createRota(
  watched: ReadonlyMap<string, Watched>,
  hears: (name: string) => boolean,
): Rota {
  let at = 0;
  /** Rows are from before a time in which nobody heard of all of them. */
  let rested = false;

  function inTurn(): Watched[] {
    const all = [...watched.values()];
    const turn = hears('') ? all.slice(at, at + MOST_AT_ONCE) : [];
    return [...turn, ...all.filter(({ address }) => hears(address.name))];
  }

  return {
    get looks() {
      return Math.max(1, Math.ceil(watched.size / MOST_AT_ONCE));
    },
    take() {
      const turn = inTurn();
      const all = hears('');
      // A picture is of all; one that cannot be read costs no more than itself.
      const unread = all ? [...watched.values()].filter((one) => rested || one.view === null) : [];
      if (all) at = at + MOST_AT_ONCE >= watched.size ? 0 : at + MOST_AT_ONCE;
      rested = !all;
      return [...new Set([...turn, ...unread])];
    },
    next: () => new Set(inTurn().map(({ address }) => address.name)),
  };
}
