/** How far rate and cap went from where an episode began. Pure. Stage: audit. */
import type { EntryValues } from '../actuate/entry.js';
import type { Episode, EpisodeEntry } from './episode-types.js';

/** Rate and cap each for itself. An entry counts by what it moved: a number that it found so is not its own. */
export function farthestOf(
  before: EntryValues,
  entries: readonly EpisodeEntry[],
): NonNullable<Episode['farthest']> {
  const far = { rate: before.rate, inFlightMax: before.inFlightMax };
  for (const { body } of entries) {
    if (body.after === null) continue;
    for (const name of ['rate', 'inFlightMax'] as const) {
      const value = body.after[name];
      if (value === body.before?.[name]) continue;
      if (distance(value, before[name]) > distance(far[name], before[name])) far[name] = value;
    }
  }
  return far;
}

/** By factors: from 400 to 200 is as far as to 800. No cap is farther than any. */
export function distance(value: number, from: number): number {
  if (value === from) return 0;
  if (value <= 0 || from <= 0) return Number.MAX_VALUE;
  return Math.abs(Math.log(value / from));
}
