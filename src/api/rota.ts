/** Whose turn it is to be looked at: of the channel of all some at a time, and each that has a channel of its own. Stage: api. */
import type { OwnStatuses } from '../view/own-statuses.js';
import type { Shown } from './shown.js';
import type { Watched } from './watched.js';

/** Limiters of one look that others lead: of 1,000 each is read every 4 s. */
const MOST_AT_ONCE = 250;
/** Of those that this daemon leads it hears when something has changed: of 1,000 each is read every 16 s. */
const MOST_OWN_AT_ONCE = 64;
/** Of those that have stirred; the others wait for the next look. */
const MOST_STIRRED = 100;

export interface Rota {
  /** In so many looks each had its turn. */
  readonly looks: number;
  /** For this look; the next is that of the others. */
  take(): Watched[];
  /** Names of those whose turn comes next. */
  next(): Set<string>;
}

export interface RotaOptions {
  watched: ReadonlyMap<string, Watched>;
  /** Does anybody follow this channel? '' is that of all. */
  hears: (name: string) => boolean;
  shown: Shown;
  own: OwnStatuses;
}

export function createRota({ watched, hears, shown, own }: RotaOptions): Rota {
  let look = 0;
  /** Rows are from before a time in which nobody heard of all of them. */
  let rested = false;

  const looksOf = (most: number) => Math.max(1, Math.ceil(watched.size / most));

  function inTurn(): Watched[] {
    const all = [...watched.values()];
    const focused = all.filter(({ address }) => hears(address.name));
    if (!hears('')) return focused;
    const looks = looksOf(MOST_AT_ONCE);
    const ownLooks = looksOf(MOST_OWN_AT_ONCE);
    const turn = all.filter(
      ({ address }, i) => (look + i) % (own.leads(address.name) ? ownLooks : looks) === 0,
    );
    const known = (names: Iterable<string>) =>
      [...names].flatMap((name) => watched.get(name) ?? []);
    const stirred = known(own.stirred).slice(0, MOST_STIRRED);
    return [...turn, ...focused, ...known(shown.names()), ...stirred];
  }

  return {
    get looks() {
      const leads = [...watched.keys()].some((name) => own.leads(name));
      return looksOf(leads ? MOST_OWN_AT_ONCE : MOST_AT_ONCE);
    },
    take() {
      const turn = inTurn();
      const all = hears('');
      // A picture is of all; one that cannot be read costs no more than itself.
      const unread = all ? [...watched.values()].filter((one) => rested || one.view === null) : [];
      look += 1;
      rested = !all;
      return [...new Set([...turn, ...unread])];
    },
    next: () => new Set(inTurn().map(({ address }) => address.name)),
  };
}
