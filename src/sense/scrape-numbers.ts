/** Two pages of one process → what its counters and histograms gained in between. Pure. Stage: sense. */
import type { Sample } from './scrape-parse.js';

export type Labels = Readonly<Record<string, string | readonly string[]>>;

/** Has the series each of these labels, with one of the values? */
export function matches(sample: Sample, labels: Labels = {}): boolean {
  return Object.entries(labels).every(([name, wanted]) => {
    const value = sample.labels[name];
    return typeof wanted === 'string' ? value === wanted : wanted.includes(value as string);
  });
}

const identities = new WeakMap<Sample, string>();

function identity(sample: Sample): string {
  const known = identities.get(sample);
  if (known !== undefined) return known;
  const made = JSON.stringify(Object.entries(sample.labels).sort(([a], [b]) => (a < b ? -1 : 1)));
  identities.set(sample, made);
  return made;
}

/**
 * What is to be known of these series at the next page: those that are not on this one are remembered as they were. A
 * page may have broken off, and when it is whole again, what was counted long ago is no burst.
 */
export function remembered(before: readonly Sample[], now: readonly Sample[]): readonly Sample[] {
  const there = new Set(now.map(identity));
  const gone = before.filter((sample) => !there.has(identity(sample)));
  return gone.length === 0 ? now : [...now, ...gone.slice(0, MOST_GONE)];
}

/** Series come and go for ever in some processes. */
const MOST_GONE = 20_000;

/**
 * What each matching series gained. One that was not there before began at zero, for the process is the same: a first
 * failure is one failure.
 */
export function gains(
  before: readonly Sample[],
  now: readonly Sample[],
  labels?: Labels,
): { sample: Sample; gain: number }[] {
  const last = new Map(before.map((sample) => [identity(sample), sample.value]));
  return now
    .filter((sample) => matches(sample, labels))
    .map((sample) => ({ sample, gain: sample.value - (last.get(identity(sample)) ?? 0) }));
}

export function total(gained: readonly { gain: number }[]): number {
  return gained.reduce((sum, { gain }) => sum + gain, 0);
}

export interface BucketQuantile {
  value: number;
  /** The quantile lies above the highest bound: the value is that bound, and the truth is higher. */
  beyond: boolean;
}

/**
 * The q-quantile of gains by upper bound (`le`), cumulative, by lines between the bounds, as Prometheus has it. Null of
 * none, or without usable bounds.
 */
export function bucketQuantile(
  gained: readonly { sample: Sample; gain: number }[],
  q: number,
): BucketQuantile | null {
  const byBound = new Map<number, number>();
  for (const { sample, gain } of gained) {
    const le = sample.labels.le ?? '';
    const bound = /^\+?inf$/i.test(le) ? Number.POSITIVE_INFINITY : Number(le || Number.NaN);
    if (!Number.isNaN(bound)) byBound.set(bound, (byBound.get(bound) ?? 0) + gain);
  }
  const bounds = [...byBound.keys()].sort((a, b) => a - b);
  const finite = bounds.filter(Number.isFinite);
  const highest = finite[finite.length - 1];
  if (highest === undefined) return null;
  // A page is not written in one moment: a bucket may be a little ahead of the next.
  let most = 0;
  const cumulative = bounds.map((bound) => {
    most = Math.max(most, byBound.get(bound) ?? 0);
    return most;
  });
  if (!(most > 0)) return null;
  const rank = q * most;
  const at = cumulative.findIndex((count) => count >= rank);
  const bound = bounds[at]!;
  if (bound === Number.POSITIVE_INFINITY) return { value: highest, beyond: true };
  const lower = at === 0 ? Math.min(0, bound) : bounds[at - 1]!;
  const below = at === 0 ? 0 : cumulative[at - 1]!;
  const inside = cumulative[at]! - below;
  const share = inside > 0 ? (rank - below) / inside : 1;
  return { value: lower + (bound - lower) * share, beyond: false };
}
