/** Adds up what a canary's part of the subjects, and the others, have seen since it began. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { CanarySeen, GroupSeen } from '../decide/canary.js';
import { countOf, countWhere, packBins } from '../estimate/bins.js';
import { binsIn, type PackedBins, quantileOfPacked } from '../histogram.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { TELEMETRY_TTL_MS } from '../redis/telemetry-fields.js';
import { readSeconds } from '../redis/telemetry-seconds.js';
import { emptyDelta } from '../sense/delta.js';
import { addSecond } from '../sense/telemetry-delta.js';

/** Services follow within this time: until then both groups are mixed. */
const FOLLOW_S = 2;

export type Objective = CanarySeen['objective'];

/** The response time that the policy wants of its services; the strictest of several. */
export function responseObjective({ signals, objective }: Policy): Objective {
  let found: Objective = null;
  for (const [name, { below }] of Object.entries(objective)) {
    const signal = signals[name];
    if (below === undefined || signal?.source !== 'telemetry' || signal.stat !== 'latency')
      continue;
    if (found === null || below < found.belowMs) found = { of: signal.of, belowMs: below };
  }
  return found;
}

export interface SeenSoFar {
  /** Reads the seconds that are over by now; each is read once. */
  read(nowMs: number): Promise<void>;
  /** What was seen since the last reading, and until services follow again, does not count. */
  skip(nowMs: number): void;
  group(objective: Objective): GroupSeen;
}

/** Of one limiter. Who leads later goes on with the two minutes that are still kept. */
export function createSeenSoFar(
  redis: RedisClient,
  address: LimiterAddress,
  sinceMs: number,
): SeenSoFar {
  const keys = limiterKeys(address);
  const sums = { offered: 0, denied: 0, ok: 0, failed: 0, latencyMs: 0 };
  let bins: PackedBins = [];
  let next = Math.ceil(sinceMs / 1000) + FOLLOW_S;

  return {
    async read(nowMs) {
      const end = Math.floor(nowMs / 1000) - 1;
      const oldest = end - TELEMETRY_TTL_MS / 1000 + 2;
      const first = Math.max(next, oldest);
      if (first >= end) return;
      const wishes = Array.from({ length: end - first }, (_, i) => {
        return { key: keys.telemetry(first + i), mark: '' };
      });
      const { seconds } = await readSeconds(redis, wishes);
      const delta = emptyDelta();
      for (const second of seconds) {
        if (second !== null) addSecond(delta, undefined, second.lines);
      }
      next = end;
      const { counts } = delta;
      sums.offered += counts.offered;
      sums.denied += Object.values(counts.denied).reduce((sum, count) => sum + count, 0);
      sums.ok += counts.ok;
      sums.failed += counts.failed;
      sums.latencyMs += counts.latencySumMs;
      bins = packBins([...bins, ...binsIn(delta.bins.latency)]);
    },
    skip(nowMs) {
      next = Math.ceil(nowMs / 1000) + FOLLOW_S;
    },
    group(objective) {
      const { offered, denied, ok, failed, latencyMs } = sums;
      const of = objective?.of ?? 0.95;
      const count = countOf(bins);
      const mean = count > 0 ? latencyMs / count : null;
      return {
        ...{ offered, denied, answers: ok + failed, failed },
        responseMs: of === 'mean' ? mean : quantileOfPacked(bins, of),
        slow: objective === null ? 0 : countWhere(bins, (ms) => ms > objective.belowMs),
      };
    },
  };
}
