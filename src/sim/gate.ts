/** The gate of the plant: a token bucket and an in-flight cap, as the scripts in Redis decide. Stage: simulate. */

/** What is enforced now; `inFlightMax` 0: no cap. */
export interface Enforced {
  rate: number;
  capacity: number;
  inFlightMax: number;
  generation: number;
}

export const NO_LIMIT: Enforced = { rate: 1e9, capacity: 1e9, inFlightMax: 0, generation: 0 };

export interface Gate {
  readonly enforced: Enforced;
  /** From now on; what the old rate has paid stays paid, and open pays nothing. */
  enforce(numbers: Enforced, nowMs: number): void;
  /** Which limit denies a request of cost 1; null admits and takes its token. */
  deny(inFlight: number, nowMs: number): 'rate' | 'in_flight' | 'breaker_open' | null;
  copy(): Gate;
}

export function createGate(
  from = { enforced: NO_LIMIT, tokens: NO_LIMIT.capacity, atMs: 0 },
): Gate {
  let { enforced, tokens, atMs } = from;

  function settle(nowMs: number): void {
    const paid = ((nowMs - atMs) * enforced.rate) / 1000;
    tokens = Math.min(enforced.capacity, tokens + paid);
    atMs = nowMs;
  }

  return {
    get enforced() {
      return enforced;
    },
    enforce(numbers, nowMs) {
      settle(nowMs);
      tokens = numbers.rate === 0 ? 0 : Math.min(tokens, numbers.capacity);
      enforced = numbers;
    },
    deny(inFlight, nowMs) {
      if (enforced.rate === 0) return 'breaker_open';
      if (enforced.inFlightMax > 0 && inFlight >= enforced.inFlightMax) return 'in_flight';
      settle(nowMs);
      if (tokens < 1) return 'rate';
      tokens -= 1;
      return null;
    },
    copy: () => createGate({ enforced, tokens, atMs }),
  };
}
