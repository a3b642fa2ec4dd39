/** What an episode cost, from the minute roll-ups of its minutes. Pure. Stage: audit. */
import type { HistoryRow } from '../redis/history-rows.js';
import type { EpisodeCost } from './episode-types.js';

/** As in `redis/history-rows`, which also talks to Redis. */
const MINUTE_MS = 60_000;

/** Denials by the reserve: low priorities, so that the others pass. */
const SHED_REASON = 'reserve';

/** Whole minutes, so the first and the last tell a little of what lies beside the episode. `rows` oldest first. */
export function costOf(
  rows: readonly HistoryRow[],
  fromMs: number,
  untilMs: number,
): EpisodeCost | null {
  const first = Math.floor(fromMs / MINUTE_MS);
  const last = Math.floor(untilMs / MINUTE_MS);
  const total: EpisodeCost = {
    denied: 0,
    byReason: {},
    shed: 0,
    objectiveMissedS: 0,
    notClosedS: 0,
    minutes: 0,
  };
  for (let i = from(rows, first); i < rows.length && rows[i]!.minute <= last; i++) {
    addMinute(total, rows[i]!);
  }
  return total.minutes === 0 ? null : rounded(total);
}

/** Adds one minute to a cost; a report counts those of a day so. */
export function addMinute(total: EpisodeCost, row: HistoryRow): void {
  for (const [reason, count] of Object.entries(row.denied)) {
    total.denied += count;
    total.byReason[reason] = (total.byReason[reason] ?? 0) + count;
    if (reason === SHED_REASON) total.shed += count;
  }
  total.objectiveMissedS += row.overloadS;
  total.notClosedS += row.notClosedS;
  total.minutes++;
}

/** Seconds were added up tick by tick; their decimals are noise. */
export function rounded(cost: EpisodeCost): EpisodeCost {
  return {
    ...cost,
    objectiveMissedS: Math.round(cost.objectiveMissedS),
    notClosedS: Math.round(cost.notClosedS),
  };
}

/** The first row of that minute or a later one. */
function from(rows: readonly HistoryRow[], minute: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.minute < minute) low = middle + 1;
    else high = middle;
  }
  return low;
}
