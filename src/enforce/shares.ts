/** Asks Redis for this process's part of the in-flight cap: each second, at new numbers, and when it ran out. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { InForce } from '../redis/calls.js';
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
  /** Places are held one by one in Redis instead: `exact`. */
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
  slots?: Slots | null;
  clock: Clock;
  processId: string;
  deadlineMs: number;
  onReply: (inForce: InForce) => void;
}

export function createShares(options: SharesOptions): Shares {
  const { redis, finder, time, view, inFlight, clock, processId, deadlineMs } = options;
  let asking: Promise<void> | null = null;
  let lastAskMs = Number.NEGATIVE_INFINITY;
  let hadShare = false;
  let tries = 0;
  let again: ReturnType<typeof setTimeout> | undefined;

  /** `leaving`: gives the part back. */
  function ask(deadlineAtMs: number, leaving = false): Promise<void> {
    lastAskMs = clock.monotonicMs();
    return options.link().within(deadlineAtMs, async () => {
      const keys = finder.keys ?? (await finder.find());
      const sentMs = clock.monotonicMs();
      const reports = inFlight.reports && !leaving && !options.slots;
      const need = leaving ? 0 : inFlight.takeNeed();
      const reply = await inFlightScript(redis, {
        keys,
        processId,
        need,
        reports,
        fallback: view.fallback(),
      });
      const receivedMs = clock.monotonicMs();
      time.learn(reply.nowUs, sentMs, receivedMs);
      if (reports && reply.share > 0) hadShare = true;
      const share = hadShare || reply.fair < 1 ? reply.share : FIRST_PLACES;
      if (reports || !inFlight.reports) inFlight.setShare(share, sentMs);
      if (reports) settle(reply.share < reply.fair);
      view.seeProcesses(reply.processes);
      options.onReply(reply.inForce);
    });
  }

  /** `short`: others hold what is this process's due until they have asked again. */
  function settle(short: boolean): void {
    clearTimeout(again);
    const waitMs = short ? AGAIN_MS[tries] : undefined;
    if (!short) tries = 0;
    if (waitMs === undefined) return;
    tries += 1;
    again = setTimeout(() => {
      if (options.link().up) void refresh(clock.monotonicMs() + deadlineMs);
    }, waitMs).unref();
  }

  function refresh(deadlineAtMs: number): Promise<void> {
    asking ??= ask(deadlineAtMs)
      .catch(() => {})
      .finally(() => {
        asking = null;
      });
    // The question under way may have more time than who joins it.
    return expire(asking, deadlineAtMs - clock.monotonicMs()).catch(() => {});
  }

  return {
    slots: options.slots ?? null,
    refresh,
    hungry() {
      if (options.slots) return;
      const nowMs = clock.monotonicMs();
      if (!options.link().up || nowMs - lastAskMs < HUNGRY_EVERY_MS) return;
      void refresh(nowMs + deadlineMs);
    },
    leave(deadlineAtMs) {
      clearTimeout(again);
      return ask(deadlineAtMs, true).catch(() => {});
    },
  };
}
