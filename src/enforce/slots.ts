/** Places under the in-flight cap held one by one in Redis: exact, for caps smaller than the fleet. Stage: enforce. */
import type { Clock } from '../clock.js';
import { slots as slotsScript } from '../redis/scripts.js';
import type { KeyFinder } from './address.js';
import type { OnRedisError } from './arguments.js';
import type { InFlight, Slot } from './in-flight.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';

/** Most ids of one call: bounds the time it holds Redis. */
const MOST = 500;
/** Nobody waits for a renewal or a return. */
const PATIENCE_MS = 500;

export interface Slots {
  /** A place, or why there is none. */
  reserve(startedMs: number, onRedisError: OnRedisError): Promise<Slot | 'full' | 'away'>;
  /** The request has ended: its place returns with the others of this turn. */
  release(slot: Slot): void;
  /** Once a second, well within the 5 s for which Redis holds a place. */
  renew(): Promise<void>;
  /** Settles when all that was returned has been sent. */
  close(): Promise<void>;
}

export interface SlotsOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  view: InForceView;
  inFlight: InFlight;
  clock: Clock;
  processId: string;
  deadlineMs: number;
}

interface Asking {
  id: string;
  deadlineAtMs: number;
  /** null: Redis did not answer in time. */
  settle: (held: boolean | null) => void;
}

export function createSlots(options: SlotsOptions): Slots {
  const { redis, finder, view, inFlight, clock, processId, deadlineMs } = options;
  const idOf = new Map<Slot, string>();
  let asking: Asking[] = [];
  let returned: string[] = [];
  let count = 0;

  function call(op: 'hold' | 'release', ids: string[], deadlineAtMs: number) {
    return options.link().within(deadlineAtMs, async () => {
      const keys = finder.keys ?? (await finder.find());
      return slotsScript(redis, { keys, op, ids, fallback: view.fallback() });
    });
  }

  /** The questions of one event-loop turn go in one call. */
  function ask(id: string, deadlineAtMs: number): Promise<boolean | null> {
    return new Promise((settle) => {
      if (asking.length === 0) setImmediate(sendAsked);
      asking.push({ id, deadlineAtMs, settle });
      if (asking.length >= MOST) sendAsked();
    });
  }

  function sendAsked() {
    const batch = asking;
    asking = [];
    if (batch.length > 0) void hold(batch);
  }

  async function hold(batch: Asking[]) {
    const ids = batch.map((each) => each.id);
    try {
      const { done } = await call('hold', ids, Math.min(...batch.map((each) => each.deadlineAtMs)));
      for (const [i, each] of batch.entries()) each.settle(done[i] === true);
    } catch {
      // They may have been given all the same: nobody uses them.
      for (const each of batch) {
        giveBack(each.id);
        each.settle(null);
      }
    }
  }

  function giveBack(id: string) {
    if (returned.length === 0) setImmediate(() => void sendReturned());
    returned.push(id);
  }

  /** What cannot be sent returns by time. */
  async function sendReturned(): Promise<void> {
    const ids = returned;
    returned = [];
    await inParts('release', ids);
  }

  async function inParts(op: 'hold' | 'release', ids: string[]): Promise<void> {
    if (!options.link().up) return;
    for (let from = 0; from < ids.length; from += MOST) {
      const part = ids.slice(from, from + MOST);
      await call(op, part, clock.monotonicMs() + PATIENCE_MS).catch(() => {});
    }
  }

  /** Without Redis: an even part of the cap that was last seen or given. */
  function part(): number {
    const cap = view.fallback().inFlightMax;
    return cap > 0 ? Math.max(1, Math.floor(cap / view.processes)) : Number.POSITIVE_INFINITY;
  }

  return {
    async reserve(startedMs, onRedisError) {
      // Off admits all, and shadow answers as if there were no cap.
      if (view.mode === 'off' || view.shadow) return inFlight.force(clock.monotonicMs());
      count += 1;
      const id = `${processId}:${count.toString(36)}`;
      const held = options.link().up ? await ask(id, startedMs + deadlineMs) : null;
      if (held === false) return 'full';
      const nowMs = clock.monotonicMs();
      if (held === null && onRedisError === 'closed') return 'away';
      if (held === null && onRedisError === 'local') return inFlight.reserveWithin(part(), nowMs);
      const slot = inFlight.force(nowMs);
      if (held) idOf.set(slot, id);
      inFlight.apart = idOf.size;
      return slot;
    },
    release(slot) {
      const id = idOf.get(slot);
      if (id === undefined) return;
      idOf.delete(slot);
      inFlight.apart = idOf.size;
      giveBack(id);
    },
    renew: () => inParts('hold', [...idOf.values()]),
    close: () => inParts('release', [...returned.splice(0), ...idOf.values()]),
  };
}
