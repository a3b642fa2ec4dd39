/** Asks Redis for this process's part of the in-flight cap, or whether it is kept place by place. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { InFlightReply, InForce } from '../redis/calls.js';
import { inFlight as inFlightScript } from '../redis/scripts.js';
import type { KeyFinder } from './address.js';
import type { InFlight } from './in-flight.js';
import type { InForceView } from './in-force.js';
import { expire, type Link } from './link.js';
import type { RedisClient } from './options.js';
import type { RedisTime } from './redis-time.js';
import type { Slots } from './slots.js';

/** A process whose part is used up asks again at most this often. */
const HUNGRY_EVERY_MS = 100;
/**
 * A process that has just started, and whose part others still hold (until they ask again, or 3 s after they
 * died), may have this many requests under way: it must not refuse because it is new.
 */
const FIRST_PLACES = 1;
/**
 * A part that others still hold is asked for again so soon: after a cut or at a start they give it up within a
 * moment. Longer than a dead process's part lasts, nobody asks.
 */
const AGAIN_MS = [50, 100, 200, ...Array<number>(12).fill(250)];

export interface Shares {
  /** Places are held one by one in Redis instead: the policy or the code says so, or the cap is too small to share. */
  readonly slots: Slots | null;
  /** Ask now, or join the question under way; never rejects. */
  refresh(deadlineAtMs: number): Promise<void>;
  /** The cap just denied here: others may have room to spare. */
  hungry(): void;
  /** Give the part back. */
  leave(deadlineAtMs: number): Promise<void>;
}

export interface SharesOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  view: InForceView;
  inFlight: InFlight;
  slots: Slots;
  /** true: always place by place; false: never; undefined: when the cap is smaller than the fleet. */
  exact: () => boolean | undefined;
  clock: Clock;
  processId: string;
  deadlineMs: number;
  onReply: (inForce: InForce) => void;
}

export function createShares(options: SharesOptions): Shares {
  const { redis, finder, time, view, inFlight, clock, processId, deadlineMs, slots } = options;
  let placed = options.exact() === true;
  let asking: Promise<void> | null = null;
  let lastAskMs = Number.NEGATIVE_INFINITY;
  let hadShare = false;
  let tries = 0;
  /** One that has left must not join again. */
  let left = false;
  let again: ReturnType<typeof setTimeout> | undefined;

  /** Who hears that it goes the other way now asks once more, as one that goes so. */
  async function ask(deadlineAtMs: number): Promise<void> {
    if ((await askOnce(deadlineAtMs)) && !left) await askOnce(deadlineAtMs);
  }

  /** `leaving`: gives the part back. True: it goes the other way from now on. */
  function askOnce(deadlineAtMs: number, leaving = false): Promise<boolean> {
    lastAskMs = clock.monotonicMs();
    return options.link().within(deadlineAtMs, async () => {
      const keys = finder.keys ?? (await finder.find());
      const sentMs = clock.monotonicMs();
      const exact = options.exact();
      if (exact !== undefined) turn(exact);
      const reports = inFlight.reports && !leaving;
      const byPlace = reports && placed;
      const needed = inFlight.takeNeed();
      // Beside the places: what began under the share keeps its part until it has ended.
      const need = leaving ? 0 : byPlace ? inFlight.inUse - inFlight.apart : needed;
      const bound = reports && !byPlace ? mostUnderWay() : 0;
      const reply = await inFlightScript(redis, {
        keys,
        processId,
        need,
        reports,
        byPlace,
        exact,
        bound,
        fallback: view.fallback(),
      });
      const receivedMs = clock.monotonicMs();
      time.learn(reply.nowUs, sentMs, receivedMs);
      const turned = exact === undefined && reports && turn(reply.places);
      if (!placed && !turned) learn(reply, sentMs, reports, bound);
      view.seeProcesses(reply.processes);
      options.onReply(reply.inForce);
      return turned;
    });
  }

  /** All that report are told alike, in their next call; true: it is news here. */
  function turn(places: boolean): boolean {
    if (places === placed) return false;
    placed = places;
    clearTimeout(again);
    // Neither what the share allowed nor what it forbade holds any more.
    inFlight.setShare(Number.NaN, Number.NEGATIVE_INFINITY);
    return true;
  }

  /** Under shares, until the answer is heard: what is known as the share now goes on binding. */
  function mostUnderWay(): number {
    const busy = inFlight.inUse - inFlight.apart;
    return Number.isFinite(inFlight.share) ? Math.max(busy, inFlight.share) : busy;
  }

  function learn(reply: InFlightReply, sentMs: number, reports: boolean, bound: number): void {
    if (reports && reply.share > 0) hadShare = true;
    const share = hadShare || reply.fair < 1 ? reply.share : FIRST_PLACES;
    if (reports || !inFlight.reports) inFlight.setShare(share, sentMs);
    if (reports) settle(reply.share < Math.max(reply.fair, bound));
  }

  /** `short`: others hold what is this process's due until they have asked again, or it holds what is theirs. */
  function settle(short: boolean): void {
    clearTimeout(again);
    const waitMs = short && !left ? AGAIN_MS[tries] : undefined;
    if (!short) tries = 0;
    if (waitMs === undefined) return;
    tries += 1;
    again = setTimeout(() => {
      if (options.link().up) void refresh(clock.monotonicMs() + deadlineMs);
    }, waitMs).unref();
  }

  async function refresh(deadlineAtMs: number): Promise<void> {
    if (left) return;
    asking ??= ask(deadlineAtMs)
      .catch(() => {})
      .finally(() => {
        asking = null;
      });
    // The question under way may have more time than who joins it.
    await expire(asking, deadlineAtMs - clock.monotonicMs()).catch(() => {});
  }

  return {
    get slots() {
      return placed ? slots : null;
    },
    refresh,
    hungry() {
      if (placed) return;
      const nowMs = clock.monotonicMs();
      if (!options.link().up || nowMs - lastAskMs < HUNGRY_EVERY_MS) return;
      void refresh(nowMs + deadlineMs);
    },
    async leave(deadlineAtMs) {
      left = true;
      clearTimeout(again);
      // A question under way may still wait for its turn, and would be answered after this.
      if (asking !== null) await expire(asking, deadlineAtMs - clock.monotonicMs()).catch(() => {});
      await askOnce(deadlineAtMs, true).catch(() => {});
    },
  };
}
