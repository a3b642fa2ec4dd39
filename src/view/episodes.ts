/** Episodes as they stand in Redis: a page of them, newest first, of one limiter or of many; and the one of an entry. Stage: cli, api. */
import { type Chunk, createLaneChunks, type LaneChunks } from '../audit/episode-chunks.js';
import {
  type Episode,
  type EpisodeEntry,
  episodesOf,
  inStreamOrder,
  type Lane,
  laneOf,
  STEADY_MS,
} from '../audit/episodes.js';
import { readSlim } from '../audit/slim-entry.js';
import { HISTORY_MINUTE_MS, HISTORY_MINUTES, readHistoryMinutes } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import type { RedisClient } from '../redis/run-script.js';
import { endBefore, storedMs } from '../redis/stream-id.js';
import { iso } from './entry.js';
import { newestFirst, type Part } from './newest-first.js';
import { steadyAfter } from './steady-after.js';

/** One episode as programs get it. */
export interface EpisodeView extends Episode {
  limiter: string;
  /** ISO 8601 of `fromMs` and `toMs`. */
  from: string | null;
  to: string | null;
}

export interface EpisodesQuery {
  /** Most episodes. Default 20. */
  limit?: number | undefined;
  /** As the page before said with `next`. */
  before?: string | undefined;
  /** Those that were not over before this Redis time (ms), and those that began before that. */
  sinceMs?: number | undefined;
  untilMs?: number | undefined;
}

export interface EpisodesPage {
  /** Newest first, by when they ended. */
  episodes: EpisodeView[];
  /** Give it as `before` to read on; null: these were the oldest. */
  next: string | null;
}

/** Entries of one limiter that a page reads at most: an episode of more is told as far as it was read (`cut`). */
const MOST_ENTRIES = 2_000;
const PAGE = 200;

/** A page of episodes over these limiters: what is in force and what was only recommended, each by its lane. */
export async function readEpisodes(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  query: EpisodesQuery = {},
): Promise<EpisodesPage> {
  const { limit = 20, before } = query;
  const nowMs = await redisNowMs(redis);
  const page = await newestFirst<Episode>(redis, addresses, {
    limit,
    before,
    idOf: (episode) => episode.lastId,
    read: (address, from) => readOf(redis, address, { ...query, limit, before: from, nowMs }),
  });
  return { episodes: page.items.map(({ name, item }) => viewOf(name, item)), next: page.next };
}

/** The episode to which an entry belongs, whole; null: there is no such entry, or it is in none. */
export async function episodeAt(
  redis: RedisClient,
  address: LimiterAddress,
  entryId: string,
): Promise<EpisodeView | null> {
  const nowMs = await redisNowMs(redis);
  const sinceMs = storedMs({ id: entryId });
  const most = Number.POSITIVE_INFINITY;
  const { items } = await readOf(redis, address, {
    limit: most,
    mostEntries: most,
    sinceMs,
    nowMs,
  });
  const holds = ({ id, lastId }: Episode) =>
    inStreamOrder({ id }, { id: entryId }) <= 0 &&
    inStreamOrder({ id: entryId }, { id: lastId }) <= 0;
  // A note that is no recommendation lies within the episode of what was in force.
  const found = items.find((each) => holds(each) && each.lane === 'in_force') ?? items.find(holds);
  return found === undefined ? null : viewOf(address.name, found);
}

function viewOf(limiter: string, episode: Episode): EpisodeView {
  return { limiter, from: iso(episode.fromMs), to: iso(episode.toMs), ...episode };
}

interface OneQuery extends EpisodesQuery {
  limit: number;
  nowMs: number;
  mostEntries?: number;
}

async function readOf(
  redis: RedisClient,
  address: LimiterAddress,
  query: OneQuery,
): Promise<Part<Episode>> {
  const { limit, before, sinceMs = 0, untilMs = Number.POSITIVE_INFINITY, nowMs } = query;
  const { mostEntries = MOST_ENTRIES } = query;
  const key = limiterKeys(address).audit;
  const lanes = [createLaneChunks('in_force'), createLaneChunks('would_be')];
  const found: { episode: Episode; chunk: Chunk }[] = [];
  const isShown = ({ lastId }: Episode) =>
    before !== undefined && inStreamOrder({ id: lastId }, { id: before }) >= 0;
  const take = (chunk: Chunk | null) => {
    if (chunk === null) return;
    for (const episode of episodesOf(chunk.entries, { nowMs, cut: chunk.cut }, chunk.lane)) {
      if (isShown(episode) || episode.fromMs >= untilMs) continue;
      if (episode.toMs >= sinceMs) found.push({ episode, chunk });
    }
    found.sort((a, b) => inStreamOrder({ id: b.episode.lastId }, { id: a.episode.lastId }));
  };
  if (before !== undefined) {
    const newer = await nextOfEachLane(redis, key, before);
    for (const lane of lanes) for (const entry of newer) lane.add(entry);
  }
  let from = before === undefined ? '+' : endBefore(before);
  if (before === undefined && Number.isFinite(untilMs)) {
    from = await steadyAfter(redis, key, untilMs, MOST_ENTRIES);
  }
  let read = 0;
  for (;;) {
    const page = await redis.xrevrange(key, from, '-', 'COUNT', PAGE);
    for (const [id, fields] of page) {
      const entry = readSlim(id, fields);
      for (const lane of lanes) take(entry === null ? lane.reach(id) : lane.add(entry));
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) {
      for (const lane of lanes) take(lane.rest('oldest'));
      break;
    }
    from = `(${last[0]}`;
    // What is newer than it asks for only ends what is told.
    read += page.filter(([id]) => storedMs({ id }) < untilMs).length;
    const kth = found[limit - 1];
    const past = storedMs({ id: last[0] }) < sinceMs;
    const isDone = lanes.every((lane) => {
      const newest = lane.newest();
      if (newest === undefined) return kth !== undefined || past;
      if (past && storedMs(newest) < sinceMs) return true;
      return kth !== undefined && inStreamOrder(newest, { id: kth.episode.lastId }) < 0;
    });
    if (isDone) return partOf(redis, address, found, query, !past);
    // What the page before has shown is read to its end, however long: else the next page would not move on.
    const shownOnly = found.length === 0 && lanes.every((lane) => isOfPageBefore(lane, before));
    if (read >= mostEntries && !shownOnly) {
      for (const lane of lanes) take(lane.rest('unread'));
      return partOf(redis, address, found, query, true);
    }
  }
  return partOf(redis, address, found, query, found.length > limit);
}

function isOfPageBefore(lane: LaneChunks, before: string | undefined): boolean {
  const newest = lane.newest();
  return (
    newest === undefined || (before !== undefined && inStreamOrder(newest, { id: before }) >= 0)
  );
}

/** The page's episodes with what they cost. */
async function partOf(
  redis: RedisClient,
  address: LimiterAddress,
  found: readonly { episode: Episode; chunk: Chunk }[],
  { limit, nowMs }: OneQuery,
  older: boolean,
): Promise<Part<Episode>> {
  const page = found.slice(0, limit);
  const more = older || found.length > limit;
  const minutes = new Set<number>();
  const oldest = Math.floor(nowMs / HISTORY_MINUTE_MS) - HISTORY_MINUTES;
  for (const { episode } of page) {
    const { moved, lane, fromMs, toMs, open } = episode;
    if (!moved || lane === 'would_be') continue;
    const last = Math.floor((open ? nowMs : toMs) / HISTORY_MINUTE_MS);
    const first = Math.max(oldest, Math.floor(fromMs / HISTORY_MINUTE_MS));
    for (let minute = first; minute <= last; minute++) minutes.add(minute);
  }
  const sorted = [...minutes].sort((a, b) => a - b);
  const rows = await readHistoryMinutes(redis, limiterKeys(address), sorted);
  if (rows.length === 0) return { items: page.map(({ episode }) => episode), more };
  const toldOf = new Map<Chunk, Episode[]>();
  const items = page.map(({ episode, chunk }) => {
    const { entries, cut, lane } = chunk;
    const told = toldOf.get(chunk) ?? episodesOf(entries, { nowMs, cut, rows }, lane);
    toldOf.set(chunk, told);
    return told.find(({ id }) => id === episode.id) ?? episode;
  });
  return { items, more };
}

/** Of each lane the first entry at or after a place: it says whether the newest before it goes on there. */
async function nextOfEachLane(
  redis: RedisClient,
  key: string,
  id: string,
): Promise<EpisodeEntry[]> {
  const found = new Map<Lane, EpisodeEntry>();
  let from = id;
  for (let read = 0; read < MOST_ENTRIES && found.size < 2; read += PAGE) {
    const page = await redis.xrange(key, from, '+', 'COUNT', PAGE);
    for (const [entryId, fields] of page) {
      const entry = readSlim(entryId, fields);
      const lane = entry === null ? null : laneOf(entry);
      if (entry !== null && lane !== null && !found.has(lane)) found.set(lane, entry);
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) break;
    // So far away nothing of the other lane goes on before the place.
    if (found.size > 0 && storedMs({ id: last[0] }) - storedMs({ id }) >= STEADY_MS) break;
    from = `(${last[0]}`;
  }
  return [...found.values()];
}
