/** What an episode is: the changes from leaving a steady value to ten steady minutes, with cause, cost and a sentence. Stage: audit → cli, api. */
import type { EntryBody, EntryValues, StoredEntry } from '../actuate/entry.js';

/** What is read of an audit entry; a stored one serves, and so does one without the inputs of its decision. */
export type EpisodeEntry = Pick<StoredEntry, 'id' | 'kind' | 'epoch' | 'revision'> & {
  body: Pick<
    EntryBody,
    'atMs' | 'actor' | 'reason' | 'sentence' | 'before' | 'after' | 'law' | 'detail'
  >;
};

/**
 * - `redis`: a failover, lost writes, lost params, a clock set back.
 * - `breaker`: a level was passed, or an upstream opened.
 * - `objective`: a signal was over its setpoint.
 * - `person`: someone's verb.
 * - `rollback`: the autopilot took its own change back.
 * - `window`, `policy`, `tune`: the schedule, an adopted policy, a retuning.
 * - `downstream`: the share of a capacity group.
 * - `signals`: signals were missing, so the limits went to the safe values.
 * - `autopilot_lost`: no autopilot wrote for a while.
 * - `recovery`: back on the way up, or room to raise.
 */
export type CauseKind =
  | 'redis'
  | 'breaker'
  | 'objective'
  | 'person'
  | 'rollback'
  | 'window'
  | 'policy'
  | 'tune'
  | 'downstream'
  | 'signals'
  | 'autopilot_lost'
  | 'recovery'
  | 'other';

export interface EpisodeCause {
  kind: CauseKind;
  /** Reason code of the entry that says it. */
  reason: string;
  /** A few words with the numbers: `orders-db waits 38`. */
  text: string;
  /** Of an objective: the worst reading of the episode, as its entry says it (`612 ms`), and how many times the setpoint. */
  signal?: string;
  value?: string;
  setpoint?: string;
  ratio?: number;
  /** The revision whose entry says it, and its epoch; of a recommendation: the one it was made beside. */
  revision: number;
  epoch: number;
}

/** What a person did within the episode. */
export interface EpisodeAct {
  /** The verb: reason code of its entry. */
  verb: string;
  by: string;
  /** Their own words. */
  why: string | null;
  epoch: number;
  revision: number;
  atMs: number;
}

/** From the minute roll-ups of the minutes that the episode touches. */
export interface EpisodeCost {
  /** Requests denied, and by which reason. */
  denied: number;
  byReason: Record<string, number>;
  /** Of those: low priorities, kept out by the reserve. */
  shed: number;
  /** Seconds in which a signal of the objective missed it. */
  objectiveMissedS: number;
  /** Seconds in which the breaker was not closed. */
  notClosedS: number;
  /** Minutes that have a roll-up, of those the episode touches; one without traffic has none. */
  minutes: number;
}

export interface Episode {
  /** Stream id of its first entry. */
  id: string;
  /** Stream id of its last entry. Its entries are those of its lane from `id` to here. */
  lastId: string;
  /** `in_force`: changes, each with a revision. `would_be`: recommendations, which changed nothing. */
  lane: 'in_force' | 'would_be';
  /** false: a steady stretch, whose entries moved no number (a rule for a subject, an adopted policy with the same). */
  moved: boolean;
  /** Redis time of the first and of the last entry that moved something. */
  fromMs: number;
  toMs: number;
  /** Ten steady minutes are not over yet, or the breaker is not closed. */
  open: boolean;
  /** It may have begun earlier: older entries are trimmed, or were not read. */
  cut: boolean;
  epoch: number;
  firstRevision: number;
  lastEpoch: number;
  lastRevision: number;
  /** Entries of its lane. */
  changes: number;
  before: EntryValues | null;
  /** Farthest from `before`, of rate and cap each for itself. */
  farthest: { rate: number; inFlightMax: number } | null;
  after: EntryValues | null;
  cause: EpisodeCause;
  /** How often the breaker opened, and for how long (ms) it stood open or half-open by the entries; to the end of it at most. */
  trips: number;
  openMs: number;
  persons: EpisodeAct[];
  /** null: no roll-up of its minutes is there (yet, or any more). */
  cost: EpisodeCost | null;
  /** Without the times, which are said in the reader's time zone: `orders-db waits 38; 400 → 118/s; 41 changes`. */
  sentence: string;
}
