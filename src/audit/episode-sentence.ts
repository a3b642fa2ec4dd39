/** An episode as one sentence: cause, numbers, what it cost, how it ended. Pure. Stage: audit. */
import type { EntryValues } from '../actuate/entry.js';
import { num } from '../decide/reasons.js';
import { farthestOf } from './episode-farthest.js';
import type { Episode, EpisodeEntry } from './episode-types.js';

type Told = Omit<Episode, 'sentence'>;

/**
 * `orders-db waits 38; 400 → 118/s, cap 44 → 12; 41 changes; 3,120 denied; back at 394`. What a person did is told
 * beside the cause, not as its effect: `p99 612 ms; 400 → 118/s; 9 changes; pin to 23/s by ops@db` says that the law
 * went down to 118 and the person to 23.
 */
export function sentenceOf(episode: Told, entries: readonly EpisodeEntry[]): string {
  if (!episode.moved) return steadySentence(episode, entries);
  return movingSentence(
    episode.cause.kind === 'person' ? episode : apart(episode, entries),
    entries,
  );
}

/** Without the moves of persons, of which `acts` tells. */
function apart(episode: Told, entries: readonly EpisodeEntry[]): Told {
  const { before, persons } = episode;
  if (before === null || persons.length === 0) return episode;
  const others = entries.filter(({ body }) => body.actor.kind !== 'person');
  const trips = others.filter(
    ({ body }) => body.after?.state === 'open' && body.before?.state !== 'open',
  ).length;
  return { ...episode, farthest: farthestOf(before, others), trips };
}

function movingSentence(episode: Told, entries: readonly EpisodeEntry[]): string {
  const parts = [
    episode.lane === 'would_be' ? `would be: ${episode.cause.text}` : episode.cause.text,
    numbers(episode),
    tripped(episode),
    episode.changes > 1 ? `${thousands(episode.changes)} ${counted(episode)}` : '',
    episode.cause.kind === 'person' ? '' : acts(entries),
    episode.cost && episode.cost.denied > 0 ? `${thousands(episode.cost.denied)} denied` : '',
    ending(episode),
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** `02:14–02:31`, or one time; `clock` says a time as its reader does. */
export function episodeTimes(
  { fromMs, toMs, open }: Pick<Episode, 'fromMs' | 'toMs' | 'open'>,
  clock: (ms: number) => string,
): string {
  const from = clock(fromMs);
  const to = open ? 'now' : clock(toMs);
  return from === to ? from : `${from}–${to}`;
}

function counted({ lane }: Told): string {
  return lane === 'would_be' ? 'recommendations' : 'changes';
}

function steadySentence({ cause, changes }: Told, entries: readonly EpisodeEntry[]): string {
  if (changes === 1) return `${cause.text}; no limit moved`;
  const counts = new Map<string, number>();
  for (const { body } of entries) counts.set(body.reason, (counts.get(body.reason) ?? 0) + 1);
  const by = [...counts]
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .slice(0, 4)
    .map(([reason, count]) => `${reason} ${thousands(count)}`);
  return `${thousands(changes)} changes that moved no limit: ${by.join(', ')}${counts.size > 4 ? ', …' : ''}`;
}

/** From where it began to the farthest of each; what stands when there is no before. */
function numbers({ before, farthest, after }: Told): string {
  if (after === null) return '';
  if (before === null || farthest === null) {
    return `begins at ${num(after.rate)}/s${after.inFlightMax > 0 ? `, cap ${cap(after.inFlightMax)}` : ''}`;
  }
  const parts: string[] = [];
  if (before.mode !== after.mode) parts.push(`mode ${before.mode} → ${after.mode}`);
  if (farthest.rate !== before.rate) parts.push(`${num(before.rate)} → ${num(farthest.rate)}/s`);
  if (farthest.inFlightMax !== before.inFlightMax) {
    parts.push(`cap ${cap(before.inFlightMax)} → ${cap(farthest.inFlightMax)}`);
  }
  if (before.capacity !== after.capacity && parts.length === 0) {
    parts.push(`capacity ${num(before.capacity)} → ${num(after.capacity)}`);
  }
  return parts.join(', ');
}

function tripped({ trips }: Told): string {
  if (trips === 0) return '';
  return trips === 1 ? 'breaker opened' : `breaker opened ${trips} times`;
}

/** `rollback to 118/s, trip by ops@db (unverified)`: each verb once, with what it moved last. */
function acts(entries: readonly EpisodeEntry[]): string {
  const verbs = new Map<string, Map<string, string>>();
  for (const { body } of entries) {
    if (body.actor.kind !== 'person') continue;
    const known = verbs.get(body.actor.name) ?? new Map<string, string>();
    known.set(body.reason, movedTo(body.before, body.after) || (known.get(body.reason) ?? ''));
    verbs.set(body.actor.name, known);
  }
  return [...verbs]
    .map(([by, done]) => `${[...done].map(([verb, to]) => verb + to).join(', ')} by ${by}`)
    .join('; ');
}

function movedTo(before: EntryValues | null, after: EntryValues | null): string {
  if (before === null || after === null) return '';
  const to = [
    ...(before.rate === after.rate ? [] : [`${num(after.rate)}/s`]),
    ...(before.inFlightMax === after.inFlightMax ? [] : [`cap ${cap(after.inFlightMax)}`]),
  ];
  return to.length === 0 ? '' : ` to ${to.join(' and ')}`;
}

/** `back at 394`, `ends at 250, cap 20`, `not over, now at 250`; nothing where the farthest is the end. */
function ending({ before, farthest, after, open }: Told): string {
  if (after === null) return '';
  const { state } = after;
  const breaker = state === 'closed' ? '' : `, breaker ${state}`;
  // A limiter that has just begun, and nothing has moved it.
  if (before === null || farthest === null) return breaker.replace(', ', '');
  const rate = farthest.rate !== before.rate || after.rate !== before.rate;
  const capped =
    farthest.inFlightMax !== before.inFlightMax || after.inFlightMax !== before.inFlightMax;
  const standing = [
    ...(rate ? [num(after.rate)] : []),
    // Where the rate tells enough, a cap that came back with it is left out.
    ...(capped && !(rate && isBack(after, before)) ? [`cap ${cap(after.inFlightMax)}`] : []),
  ].join(', ');
  if (open) return `not over${standing === '' ? '' : `, now at ${standing}`}${breaker}`;
  const returned =
    (rate && after.rate !== farthest.rate) ||
    (capped && after.inFlightMax !== farthest.inFlightMax);
  if (!returned) return breaker.replace(', ', '');
  return `${isBack(after, before) ? 'back' : 'ends'} at ${standing}${breaker}`;
}

/** Within a tenth of where it began. */
function isBack(after: EntryValues, before: EntryValues): boolean {
  return near(after.rate, before.rate) && near(after.inFlightMax, before.inFlightMax);
}

function near(value: number, from: number): boolean {
  return Math.abs(value - from) <= 0.1 * Math.abs(from);
}

function cap(value: number): string {
  return value > 0 ? num(value) : 'none';
}

/** `3,120`: the same in every place. */
export function thousands(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}
