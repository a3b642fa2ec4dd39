/** Names like the one that was not found, likeliest first. Pure. Stage: sense. */
import { closest, third } from '../closest.js';

/** At most three: the nearest spelling, then those that share most of its words. */
export function namesLike(wanted: string, names: readonly string[]): string[] {
  const words = new Set(wordsOf(wanted));
  const near = closest(wanted, names, () => third(wanted.length, 2))?.name;
  const scored = names
    .map((name) => ({ name, shared: wordsOf(name).filter((word) => words.has(word)).length }))
    .filter(({ name, shared }) => name !== near && shared * 2 >= words.size && shared > 0)
    .sort((a, b) => b.shared - a.shared || a.name.length - b.name.length);
  return [...(near === undefined ? [] : [near]), ...scored.map(({ name }) => name)].slice(0, 3);
}

function wordsOf(name: string): string[] {
  return name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

/** `"a", "b", … (12 in all)`. */
export function fewOf(values: readonly string[]): string {
  const shown = values.slice(0, 5).map((value) => JSON.stringify(value));
  return values.length > 5 ? `${shown.join(', ')}, … (${values.length} in all)` : shown.join(', ');
}
