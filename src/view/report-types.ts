/** What a limiter did over a time, as plain data: changes, episodes, time at its bounds, trips, denials, objectives, what would be. Stage: cli, api, dashboard. */
import type { EntryValues } from '../actuate/entry.js';
import type { EpisodeCost } from '../audit/episodes.js';
import type { HeldBack, Standing } from '../audit/standing.js';
import type { LimiterState, Mode } from '../redis/params.js';
import type { Tuned } from '../tune/recommend.js';
import type { EpisodeView } from './episodes.js';

/** The JSON of one limiter in `flyball report --json`; additive only. */
export interface ReportView {
  limiter: string;
  mode: Mode;
  state: LimiterState;
  sinceMs: number;
  atMs: number;
  /** In force as stored, and the bounds of now. */
  inForce: { rate: number; capacity: number; inFlightMax: number };
  bounds: { rate: { min: number; max: number }; inFlight: { min: number; max: number } | null };
  changes: Standing['changes'];
  /** Newest first, at most 50; `more`: there are others in that time. */
  episodes: EpisodeView[];
  more: boolean;
  /** Of the time, ms for which the log says what stood; then at the floor, at the ceiling, breaker open. */
  knownMs: number;
  atFloorMs: number;
  atCeilingMs: number;
  trips: number;
  openMs: number;
  /** From the minute roll-ups; null: there is none of that time. */
  traffic: ReportTraffic | null;
  /** What guards held back of what the law wanted, most often first. */
  held: HeldBack[];
  /** *would be 520; bounds.rate.max holds 400*: a bound that stands in the way, and who says so. */
  ceilings: CeilingView[];
  /** In recommend and shadow: where the law would have the limits now; null elsewhere, or no daemon says. */
  wouldBe: EntryValues | null;
  /** From history; null: it was not asked for. */
  suggested: SuggestedView | null;
}

export interface ReportTraffic extends EpisodeCost {
  offered: number;
  admitted: number;
  failed: number;
  /** Seconds of which a daemon saw the signals: what `objectiveMissedS` and `notClosedS` are of. */
  watchedS: number;
  /** The minute in which most was denied; null: nothing was. */
  worstMinute: { atMs: number; denied: number } | null;
}

export type SuggestedView =
  | {
      status: 'ready';
      rate: SuggestedNumber;
      capacity: SuggestedNumber | null;
      inFlightMax: SuggestedNumber | null;
    }
  /** Too little history; `sentence` says how much is needed. */
  | { status: 'refused'; sentence: string };

/** `value` within the policy's bounds, `wanted` before them. */
export type SuggestedNumber = Pick<Tuned, 'value' | 'wanted' | 'inForce' | 'binds' | 'why'>;

/** A bound of the policy in the way of what the law or the history wants. */
export interface CeilingView {
  /** The line of the policy: `bounds.rate.max`. */
  bound: 'bounds.rate.max' | 'bounds.inFlight.max' | 'bounds.rate.min' | 'bounds.inFlight.min';
  wouldBe: number;
  holds: number;
  /** `law`: its decisions; `history`: what the minute roll-ups say. */
  by: 'law' | 'history';
  /** Who set that bound for a while, with `flyball bounds`; null: it is the policy's. */
  setBy: string | null;
}
