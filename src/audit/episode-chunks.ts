/** Entries newest first, cut into chunks at steady stretches, so that a page of episodes needs no whole log. Pure. Stage: audit. */
import { type EpisodeEntry, isApart, type Lane, laneOf } from './episodes.js';

/** Entries between which and all others lies a steady stretch, with the episodes they make. */
export interface Chunk {
  entries: EpisodeEntry[];
  lane: Lane;
  cut: boolean;
}

export interface LaneChunks {
  /** Gives a chunk as soon as a steady stretch before it is certain. */
  add(entry: EpisodeEntry): Chunk | null;
  /** An entry that is not of this lane, or not readable: time goes on all the same. */
  reach(id: string): Chunk | null;
  /** What is left: at the log's oldest entry, or where reading stops. */
  rest(at: 'oldest' | 'unread'): Chunk | null;
  /** The newest entry that is in no chunk yet. */
  newest(): EpisodeEntry | undefined;
}

export function createLaneChunks(lane: Lane): LaneChunks {
  let pending: EpisodeEntry[] = [];

  function give(cut: boolean): Chunk | null {
    if (pending.length === 0) return null;
    const entries = pending;
    pending = [];
    return { entries, lane, cut };
  }

  function rest(at: 'oldest' | 'unread'): Chunk | null {
    // A log that begins with a change of something has been trimmed.
    const trimmed = lane === 'in_force' && pending.at(-1)?.body.before != null;
    return give(at === 'unread' || trimmed);
  }

  function reach(id: string): Chunk | null {
    const oldest = pending.at(-1);
    return oldest !== undefined && isApart({ id }, oldest) ? give(false) : null;
  }

  function add(entry: EpisodeEntry): Chunk | null {
    const chunk = reach(entry.id);
    if (laneOf(entry) === lane) pending.push(entry);
    return chunk;
  }

  return { add, reach, rest, newest: () => pending[0] };
}
