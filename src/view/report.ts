/** Reads what a limiter did over a time, from its log, its minute roll-ups and its policy. Stage: cli, api, dashboard. */
import { readEntries } from '../actuate/audit.js';
import { factsOf, recommendFromHistory } from '../actuate/tuning.js';
import { readFacts } from '../actuate/verbs/apply.js';
import type { Facts } from '../actuate/verbs/plan.js';
import { addMinute, rounded } from '../audit/episode-cost.js';
import type { EpisodeCost } from '../audit/episodes.js';
import { heldNow, type Standing, standingOf } from '../audit/standing.js';
import { readHistory } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { parseWindows } from '../redis/windows.js';
import type { Tuned } from '../tune/recommend.js';
import { readEpisodes } from './episodes.js';
import { ceilingsOf } from './report-ceilings.js';
import type { ReportTraffic, ReportView, SuggestedNumber, SuggestedView } from './report-types.js';
import { parseStatus } from './status-facts.js';

export interface ReportQuery {
  sinceMs: number;
  /** Also what its history suggests, which takes a second for a limiter of a week. */
  suggest: boolean;
}

const MOST_EPISODES = 50;
/** Rows are kept, and numbers are judged, so far back. */
const SUGGEST_SINCE_MS = 7 * 86_400_000;

export async function readReport(
  redis: RedisClient,
  address: LimiterAddress,
  { sinceMs, suggest }: ReportQuery,
): Promise<ReportView> {
  const keys = limiterKeys(address);
  const facts = await readFacts(redis, address, { actor: '' });
  const { params, nowMs } = facts;
  const bounds = {
    rate: { min: params.minRate, max: params.maxRate },
    inFlight: params.inFlightMax > 0 ? { min: params.minInFlight, max: params.maxInFlight } : null,
  };
  const [standing, page, traffic, [statusText = null]] = await Promise.all([
    readStanding(redis, address, { fromMs: sinceMs, toMs: nowMs }, bounds),
    readEpisodes(redis, [address], { sinceMs, limit: MOST_EPISODES }),
    readTraffic(redis, address, sinceMs),
    redis.mget(keys.status),
  ]);
  const status = parseStatus(statusText);
  const suggested = suggest ? await suggestedOf(redis, address, facts) : null;
  const { rate, capacity, inFlightMax, mode, state } = params;
  const { changes, knownMs, atFloorMs, atCeilingMs, trips, openMs, held } = standing;
  const now = heldNow(status?.decision?.heldBack);
  return {
    limiter: address.name,
    ...{ mode, state, sinceMs, atMs: nowMs },
    inForce: { rate, capacity, inFlightMax },
    bounds,
    changes,
    episodes: page.episodes,
    more: page.next !== null,
    ...{ knownMs, atFloorMs, atCeilingMs, trips, openMs },
    traffic,
    held,
    ceilings: ceilingsOf(bounds, [...now, ...held], suggested, parseWindows(params.windows).bounds),
    wouldBe: status?.wouldBe ?? null,
    suggested,
  };
}

async function readStanding(
  redis: RedisClient,
  address: LimiterAddress,
  time: { fromMs: number; toMs: number },
  bounds: ReportView['bounds'],
): Promise<Standing> {
  const all = await readEntries(redis, address, { sinceMs: time.fromMs, limit: Infinity });
  const before = await readEntries(redis, address, {
    kind: 'change',
    untilMs: time.fromMs,
    limit: 1,
  });
  const start = before.entries[0]?.body.after ?? null;
  return standingOf(all.entries.reverse(), start, time, bounds);
}

async function readTraffic(
  redis: RedisClient,
  address: LimiterAddress,
  sinceMs: number,
): Promise<ReportTraffic | null> {
  const rows = await readHistory(redis, limiterKeys(address), sinceMs);
  if (rows.length === 0) return null;
  const total: EpisodeCost = {
    ...{ denied: 0, byReason: {}, shed: 0, objectiveMissedS: 0, notClosedS: 0, minutes: 0 },
  };
  const traffic = { offered: 0, admitted: 0, failed: 0, watchedS: 0 };
  let worst: ReportTraffic['worstMinute'] = null;
  for (const row of rows) {
    const before = total.denied;
    addMinute(total, row);
    const denied = total.denied - before;
    if (denied > (worst?.denied ?? 0)) worst = { atMs: row.minute * 60_000, denied };
    traffic.offered += row.offered;
    traffic.admitted += row.admitted;
    traffic.failed += row.failed;
    traffic.watchedS += row.watchedS;
  }
  const watchedS = Math.round(traffic.watchedS);
  return { ...rounded(total), ...traffic, watchedS, worstMinute: worst };
}

async function suggestedOf(
  redis: RedisClient,
  address: LimiterAddress,
  { policy, params, nowMs }: Facts,
): Promise<SuggestedView> {
  if (policy === null) {
    return { status: 'refused', sentence: 'The adopted policy cannot be read.' };
  }
  const sinceMs = policy.tune?.since ?? SUGGEST_SINCE_MS;
  const of = { policy, params, nowMs, sinceMs, facts: factsOf(policy) };
  const found = await recommendFromHistory(redis, address, of);
  if (found.status === 'refused') return { status: 'refused', sentence: found.sentence };
  const { rate, capacity, inFlightMax } = found;
  return {
    status: 'ready',
    rate: number(rate),
    capacity: capacity && number(capacity),
    inFlightMax: inFlightMax && number(inFlightMax),
  };
}

function number({ value, wanted, inForce, binds, why }: Tuned): SuggestedNumber {
  return { value, wanted, inForce, binds, why };
}
