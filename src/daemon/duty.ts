/** What a daemon owes one limiter by its place in the fleet: to lead it, to stand by, to watch, to hand it over. Stage: daemon. */
import type { Clock } from '../clock.js';
import type { Membership } from './membership.js';

export interface Duty {
  /** May the lease be asked for now? */
  mayTake(): boolean;
  /** Neither first nor next in line: it need not know more than who leads, and what is in force. */
  watches(): boolean;
  /** Of a limiter that another leads: is it time to look again? It counts as done. */
  lookDue(): boolean;
  /** What a turn saw: did some daemon keep the limiter? */
  saw(kept: boolean): void;
  /** The lease came to this daemon. */
  took(): void;
  /** Led by this daemon, but another's by now, who has had time to warm up. */
  handsOver(): boolean;
  /** The lease was given to another. */
  gave(): void;
}

/** Who stands by looks so often a lease: each look tells of all seconds since the last. Who watches looks once. */
const STAND_BY_LOOKS = 2;

/**
 * Who took an orphan keeps it for so long: whose it is may live and yet be unable to lead it. Twice as long each time
 * that it comes back so.
 */
const KEEP_LEASES = 2;
const MOST_KEEP_LEASES = 64;

export function createDuty(options: {
  limiter: string;
  leaseMs: number;
  clock: Clock;
  members: Pick<Membership, 'rank' | 'settled'>;
}): Duty {
  const { limiter, leaseMs, clock, members } = options;
  let orphanSinceMs: number | null = null;
  let keepUntilMs = Number.NEGATIVE_INFINITY;
  let keepLeases = KEEP_LEASES;
  let gaveMs: number | null = null;
  let lookedMs = Number.NEGATIVE_INFINITY;

  return {
    mayTake() {
      const rank = members.rank(limiter);
      if (rank === 0) return true;
      // One after the other: each leaves a lease's time to who comes before it.
      return orphanSinceMs !== null && clock.monotonicMs() - orphanSinceMs >= rank * leaseMs;
    },
    watches() {
      return members.rank(limiter) > 1;
    },
    lookDue() {
      const nowMs = clock.monotonicMs();
      const looks = members.rank(limiter) > 1 ? 1 : STAND_BY_LOOKS;
      if (nowMs - lookedMs < leaseMs / looks) return false;
      lookedMs = nowMs;
      return true;
    },
    saw(kept) {
      const nowMs = clock.monotonicMs();
      if (!kept) {
        orphanSinceMs ??= nowMs;
        return;
      }
      orphanSinceMs = null;
      // What this daemon's last beat promised is over: another keeps it now.
      if (gaveMs !== null && nowMs - gaveMs > 2 * leaseMs) keepLeases = KEEP_LEASES;
    },
    took() {
      orphanSinceMs = null;
      gaveMs = null;
      if (members.rank(limiter) === 0) {
        keepLeases = KEEP_LEASES;
        return;
      }
      keepUntilMs = clock.monotonicMs() + keepLeases * leaseMs;
      keepLeases = Math.min(MOST_KEEP_LEASES, 2 * keepLeases);
    },
    handsOver() {
      return (
        members.rank(limiter) > 0 && members.settled(limiter) && clock.monotonicMs() >= keepUntilMs
      );
    },
    gave() {
      gaveMs = clock.monotonicMs();
    },
  };
}
