/** The newest numbers this process has seen in force, and those it decides by without Redis. Stage: enforce. */
import type { FallbackNumbers, InForce } from '../redis/calls.js';
import type { Mode } from '../redis/params.js';
import { isOlder } from '../redis/write-order.js';
import type { ResolvedOptions } from './options.js';

/**
 * Without Redis an open breaker is kept shut for its open time, then lets a trickle through: one token per
 * second for the whole fleet, the default probe rate of a policy.
 */
const TRICKLE = 1;
/** Assumed when no denial has told how long the breaker stays open: the default open time of a policy. */
const OPEN_FOR_MS = 5_000;
/** Rate and capacity of a total of which nothing is known: they bind nobody. */
export const UNBOUND = 1e6;

export interface InForceView {
  /** Newest managed numbers by (epoch, revision); null before the first. */
  readonly current: InForce | null;
  readonly mode: Mode;
  readonly shadow: boolean;
  /** Live processes as last told, ≥ 1. */
  readonly processes: number;
  /** Neither Redis nor the caller has given numbers. */
  readonly unknown: boolean;
  /** True when it is newer by (epoch, revision) than what was known; older numbers are ignored. */
  see(inForce: InForce, nowMs: number): boolean;
  seeProcesses(processes: number): void;
  /** A denial by the open breaker said when it could pass; null: when a person resets it. */
  seeOpen(retryAfterMs: number | null, nowMs: number): void;
  /** Numbers for a call whose params are missing. */
  fallback(): FallbackNumbers;
  /** Is the breaker open, as far as this process can tell? */
  openAt(nowMs: number): boolean;
  /** ms until the breaker half-opens by what was last seen; null when only a person ends it. */
  openForMs(nowMs: number): number | null;
}

export function createInForceView(options: ResolvedOptions): InForceView {
  const given: FallbackNumbers = {
    rate: options.rate ?? UNBOUND,
    capacity: options.rate === null ? UNBOUND : options.capacity,
    inFlightMax: options.inFlightMax,
    subjectRate: options.subjectRate,
    subjectCapacity: options.subjectCapacity,
  };
  let current: InForce | null = null;
  let numbers = given;
  let processes = 1;
  let openUntilMs = 0;

  return {
    get current() {
      return current;
    },
    get mode() {
      return current?.mode ?? 'recommend';
    },
    get shadow() {
      return current?.mode === 'shadow';
    },
    get processes() {
      return processes;
    },
    get unknown() {
      return current === null && options.rate === null && options.subjectRate < 0;
    },
    see(next, nowMs) {
      if (!next.managed) return false;
      const newer = current === null || isOlder(current, next);
      if (!newer && (next.epoch !== current?.epoch || next.revision !== current.revision)) {
        return false;
      }
      if (next.state === 'open' && (newer || current?.state !== 'open')) {
        openUntilMs = nowMs + OPEN_FOR_MS;
      }
      // One object for as long as the numbers hold: its text is made once.
      if (!sameNumbers(numbers, next)) numbers = numbersOf(next);
      current = next;
      return newer;
    },
    seeProcesses(count) {
      processes = Math.max(1, count);
    },
    seeOpen(retryAfterMs, nowMs) {
      openUntilMs = retryAfterMs === null ? Number.POSITIVE_INFINITY : nowMs + retryAfterMs;
    },
    fallback: () => numbers,
    openAt: (nowMs) => current?.state === 'open' && nowMs < openUntilMs,
    openForMs: (nowMs) =>
      openUntilMs === Number.POSITIVE_INFINITY ? null : Math.max(1, openUntilMs - nowMs),
  };
}

function numbersOf(inForce: InForce): FallbackNumbers {
  const { inFlightMax, subjectRate, subjectCapacity } = inForce;
  return { ...trickle(inForce), inFlightMax, subjectRate, subjectCapacity };
}

function trickle({ state, rate, capacity }: InForce): { rate: number; capacity: number } {
  return state === 'open' ? { rate: TRICKLE, capacity: TRICKLE } : { rate, capacity };
}

function sameNumbers(a: FallbackNumbers, inForce: InForce): boolean {
  const { rate, capacity } = trickle(inForce);
  return (
    a.rate === rate &&
    a.capacity === capacity &&
    a.inFlightMax === inForce.inFlightMax &&
    a.subjectRate === inForce.subjectRate &&
    a.subjectCapacity === inForce.subjectCapacity
  );
}
