/** Which daemons live, as Redis tells it, and which of the limiters are this one's. Stage: daemon. */

import type { Clock } from '../clock.js';
import { announce } from '../redis/announce.js';
import type { RedisClient } from '../redis/scripts.js';
import { phaseOf, ranked } from './rendezvous.js';

/** A daemon's place among the living for one limiter: 0 leads it, 1 stands by with warm estimates, others watch. */
export interface Membership {
  readonly living: readonly string[];
  rank(limiter: string): number;
  /** Have the living been the same for so long that what is not this daemon's may be handed over? */
  settled(limiter: string): boolean;
  /** Tells of itself now, and hears. Rejects when Redis does. */
  beat(): Promise<void>;
  /** Beats from now on, four times a lease. */
  start(): void;
  /** Leaves, so that the others need not wait for the lease to lapse. Never rejects. */
  leave(): Promise<void>;
}

export interface MembershipOptions {
  redis: RedisClient;
  prefix: string;
  owner: string;
  leaseMs: number;
  clock: Clock;
  /** What this daemon says of itself. */
  record: () => object;
  /** Told with each change of who lives, and with each failure. */
  onChange: (living: readonly string[]) => void;
  onError: (error: Error) => void;
}

const BEATS_A_LEASE = 4;

export function createMembership(options: MembershipOptions): Membership {
  const { redis, prefix, owner, leaseMs, clock, record, onChange, onError } = options;
  const everyMs = leaseMs / BEATS_A_LEASE;
  // Three beats missed: known to be gone before its leases have lapsed.
  const livesMs = Math.ceil(everyMs * (BEATS_A_LEASE - 1));
  let living: readonly string[] = [owner];
  let sinceMs = clock.monotonicMs();
  let ranks = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;
  let left = false;
  let beating: Promise<void> | null = null;

  async function tell(): Promise<void> {
    const heard = await announce(redis, { prefix, owner, record: record(), livesMs });
    const now = [...new Set([owner, ...heard])].sort();
    if (now.join() === living.join()) return;
    living = now;
    sinceMs = clock.monotonicMs();
    ranks = new Map();
    onChange(living);
  }

  function beat(): Promise<void> {
    beating ??= tell().finally(() => {
      beating = null;
    });
    return beating;
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void beat()
        .catch(onError)
        .finally(() => {
          if (!left) schedule();
        });
    }, everyMs);
  }

  return {
    get living() {
      return living;
    },
    rank(limiter) {
      let rank = ranks.get(limiter);
      if (rank === undefined) {
        rank = ranked(limiter, living).indexOf(owner);
        ranks.set(limiter, rank);
      }
      return rank;
    },
    settled(limiter) {
      // Spread over half a lease: not all limiters of a daemon that has joined change hands at once.
      return clock.monotonicMs() - sinceMs >= leaseMs * (0.5 + phaseOf(limiter) / 2);
    },
    beat,
    start: schedule,
    async leave() {
      left = true;
      if (timer !== null) clearTimeout(timer);
      await beating?.catch(() => {});
      await announce(redis, { prefix, owner, record: null, livesMs }).catch(() => {});
    },
  };
}
