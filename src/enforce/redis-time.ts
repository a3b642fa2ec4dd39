/** Redis's clock as this process knows it: an offset to the monotonic clock, learned from replies. Stage: enforce. */

/** Two clocks drift apart by at most this much: the known offset loosens with age. */
const DRIFT = 500e-6;
const US = 1000;

export interface RedisTime {
  /** A reply gave Redis time `nowUs`, read between `sentMs` and `receivedMs` (monotonic). */
  learn(nowUs: number, sentMs: number, receivedMs: number): void;
  /** The connection is another one now: perhaps another server, with another clock. */
  forget(): void;
  /**
   * A Redis time (µs) that surely comes no later than monotonic `atMs`; null while unknown. Charging up to
   * then, Redis never charges after `atMs`, however long a call lay in a socket.
   */
  latestAt(atMs: number): number | null;
  /** Redis time now, ms; null while unknown. */
  nowMs(monotonicMs: number): number | null;
}

/**
 * A reply bounds the offset (Redis − monotonic) from both sides: [now − received, now − sent]. Replies that
 * agree narrow it; one that does not (a clock was set) replaces it.
 */
export function createRedisTime(): RedisTime {
  let lowUs = 0;
  let highUs = 0;
  let learnedMs = Number.NaN;

  function slackUs(atMs: number): number {
    return Math.max(0, atMs - learnedMs) * US * DRIFT;
  }

  return {
    learn(nowUs, sentMs, receivedMs) {
      const low = nowUs - receivedMs * US;
      const high = nowUs - sentMs * US;
      const slack = slackUs(receivedMs);
      const disjoint = !(low <= highUs + slack && high >= lowUs - slack);
      lowUs = disjoint ? low : Math.max(low, lowUs - slack);
      highUs = disjoint ? high : Math.min(high, highUs + slack);
      learnedMs = receivedMs;
    },
    forget() {
      learnedMs = Number.NaN;
    },
    latestAt(atMs) {
      if (Number.isNaN(learnedMs)) return null;
      return Math.floor(lowUs - slackUs(atMs) + atMs * US);
    },
    nowMs(monotonicMs) {
      if (Number.isNaN(learnedMs)) return null;
      return ((lowUs + highUs) / 2 + monotonicMs * US) / US;
    },
  };
}
