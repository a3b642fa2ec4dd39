/** Any history: each change in exactly one episode, in order, whatever the order it comes in; and pages tell what the whole does. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLaneChunks } from '../../src/audit/episode-chunks.js';
import {
  type Episode,
  type EpisodeEntry,
  episodesOf,
  inStreamOrder,
  laneOf,
  moves,
  STEADY_MS,
} from '../../src/audit/episodes.js';
import { storedMs } from '../../src/redis/stream-id.js';
import { entriesOf, type Step } from '../support/episode-entries.js';

const step = fc.record({
  /** Seconds since the step before: often near ten minutes. */
  gapS: fc.oneof(
    fc.integer({ min: 0, max: 120 }),
    fc.constantFrom(599, 600, 601),
    fc.integer({ min: 600, max: 9000 }),
  ),
  kind: fc.constantFrom('rate', 'cap', 'nothing', 'state', 'would', 'note'),
  to: fc.integer({ min: 0, max: 500 }),
  state: fc.constantFrom('open', 'recovering', 'closed', 'closed'),
  person: fc.boolean(),
});

const history = fc.array(step, { maxLength: 60 }).map((steps) => {
  let s = 0;
  return entriesOf(
    steps.map(({ gapS, kind, to, state, person }): Step => {
      s += gapS;
      const by = person ? { by: 'ops' } : {};
      if (kind === 'would') return { s, note: { rate: to }, law: 'adaptive@4' };
      if (kind === 'note') return { s, note: null, reason: 'write_refused' };
      if (kind === 'rate') return { s, ...by, to: { rate: to } };
      if (kind === 'cap') return { s, ...by, to: { inFlightMax: to } };
      return kind === 'state' ? { s, ...by, to: { state } } : { s, ...by };
    }),
  );
});

/** The entries of an episode, by its place in the stream. */
function membersOf(episode: Episode, entries: readonly EpisodeEntry[]): EpisodeEntry[] {
  return entries.filter(
    (entry) =>
      laneOf(entry) === episode.lane &&
      inStreamOrder(entry, episode) >= 0 &&
      inStreamOrder(entry, { id: episode.lastId }) <= 0,
  );
}

describe.each(['in_force', 'would_be'] as const)('%s', (lane) => {
  test('each entry of the lane is in exactly one episode, and they come in order', () => {
    fc.assert(
      fc.property(history, (entries) => {
        const episodes = episodesOf(entries, {}, lane);
        const members = episodes.map((episode) => membersOf(episode, entries));
        expect(members.flat()).toEqual(entries.filter((entry) => laneOf(entry) === lane));
        expect(members.map(({ length }) => length)).toEqual(episodes.map(({ changes }) => changes));
      }),
    );
  });

  test('between moves of one episode lie less than ten minutes or an open breaker; between two, more', () => {
    fc.assert(
      fc.property(history, (entries) => {
        const episodes = episodesOf(entries, {}, lane).filter(({ moved }) => moved);
        for (const episode of episodes) {
          const moved = membersOf(episode, entries).filter(moves);
          expect([storedMs(moved[0]!), storedMs(moved.at(-1)!)]).toEqual([
            episode.fromMs,
            episode.toMs,
          ]);
          for (let i = 1; i < moved.length; i++) {
            const wasOpen =
              moved[i]!.kind === 'change' && moved[i]!.body.before!.state !== 'closed';
            expect(storedMs(moved[i]!) - storedMs(moved[i - 1]!) < STEADY_MS || wasOpen).toBe(true);
          }
        }
        for (let i = 1; i < episodes.length; i++) {
          expect(episodes[i]!.fromMs - episodes[i - 1]!.toMs).toBeGreaterThanOrEqual(STEADY_MS);
        }
      }),
    );
  });

  test('any order of the entries tells the same', () => {
    fc.assert(
      fc.property(history, fc.infiniteStream(fc.nat()), (entries, order) => {
        const told = episodesOf(entries, {}, lane);
        const keyed = entries.map((entry) => ({ entry, key: order.next().value as number }));
        const mixed = keyed.sort((a, b) => a.key - b.key).map(({ entry }) => entry);
        expect(episodesOf(mixed, {}, lane)).toEqual(told);
        expect(episodesOf([...entries].reverse(), {}, lane)).toEqual(told);
      }),
    );
  });

  test('read newest first in chunks, it tells the same as the whole', () => {
    fc.assert(
      fc.property(history, (entries) => {
        const chunks = createLaneChunks(lane);
        const told: Episode[] = [];
        const take = (chunk: ReturnType<typeof chunks.rest>) => {
          if (chunk !== null) told.unshift(...episodesOf(chunk.entries, {}, lane));
        };
        for (const entry of [...entries].reverse()) take(chunks.add(entry));
        take(chunks.rest('oldest'));
        expect(told).toEqual(episodesOf(entries, {}, lane));
      }),
    );
  });

  test('what comes later changes only the newest episode', () => {
    fc.assert(
      fc.property(history, fc.nat(), (entries, at) => {
        const cutAt = entries.length === 0 ? 0 : at % (entries.length + 1);
        const early = episodesOf(entries.slice(0, cutAt), {}, lane).slice(0, -1);
        expect(episodesOf(entries, {}, lane).slice(0, early.length)).toEqual(early);
      }),
    );
  });
});
