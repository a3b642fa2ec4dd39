/** How many streams one client holds at once: nobody may take those of all. Stage: api. */

/** A quarter of what a daemon serves: many pages of one person, not all of everybody's. */
export const MOST_OF_A_CLIENT = 16;

export interface StreamPlaces {
  /** One more of this client's, given back by what is returned; null: it has as many as it may. */
  take(client: string): (() => void) | null;
}

export function createStreamPlaces(most = MOST_OF_A_CLIENT): StreamPlaces {
  const held = new Map<string, number>();
  return {
    take(client) {
      const before = held.get(client) ?? 0;
      if (before >= most) return null;
      held.set(client, before + 1);
      let given = false;
      return () => {
        if (given) return;
        given = true;
        const left = (held.get(client) ?? 1) - 1;
        if (left === 0) held.delete(client);
        else held.set(client, left);
      };
    },
  };
}
