/** Which daemons live, as Redis tells it, and which of the limiters are this one's. Stage: daemon. */

import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import { announce } from '../redis/announce.js';
import type { RedisClient } from '../redis/scripts.js';
import { VERSION } from '../version.js';
import { phaseOf, ranked } from './rendezvous.js';

/** A daemon's place among the living for one limiter: 0 leads it, 1 stands by with warm estimates, others watch. */
export interface Membership {
  readonly living: readonly string[];
  rank(limiter: string): number;
  /** Have the living been the same for so long that what is not this daemon's may be handed over? */
  settled(limiter: string): boolean;
  /** Tells of itself now, and hears. Never rejects. */
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
  /** Told with each change of who lives. */
  onChange: (living: readonly string[]) => void;
  log: Logger;
}

const BEATS_A_LEASE = 4;

export function createMembership(options: MembershipOptions): Membership {
  const { redis, prefix, owner, leaseMs, clock, record, onChange, log } = options;
  const everyMs = leaseMs / BEATS_A_LEASE;
  // Three beats missed: known to be gone before its leases have lapsed.
  const livesMs = Math.ceil(everyMs * (BEATS_A_LEASE - 1));
  let living: readonly string[] = [owner];
  let sinceMs = clock.monotonicMs();
  let ranks = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;
  let left = false;
  let beating: Promise<void> | null = null;
  let unheard = false;

  async function tell(): Promise<void> {
    const heard = await announce(redis, {
      prefix,
      owner,
      record: { version: VERSION, ...record() },
      livesMs,
    });
    if (unheard) log.info({ event: 'fleet_heard' });
    unheard = false;
    const now = [...new Set([owner, ...heard])].sort();
    if (now.join() === living.join()) return;
    living = now;
    sinceMs = clock.monotonicMs();
    ranks = new Map();
    onChange(living);
  }

  /** Told once: the turns may work all the while, for the registry can lie on another server, or be forbidden. */
  function failed(error: unknown): void {
    if (!unheard) {
      log.warn(
        { event: 'fleet_unheard', err: error },
        `Other daemons could not be heard: ${(error as Error).message}. Those last known count as living.`,
      );
    }
    unheard = true;
  }

  function beat(): Promise<void> {
    beating ??= tell()
      .catch(failed)
      .finally(() => {
        beating = null;
      });
    return beating;
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void beat().finally(() => {
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
      await beating;
      await announce(redis, { prefix, owner, record: null, livesMs }).catch(() => {});
    },
  };
}
