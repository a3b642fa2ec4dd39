/** A place in flight for a request: within this process's part of the cap, asked for anew when it is stale. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { OnRedisError } from './arguments.js';
import type { InFlight, Slot } from './in-flight.js';
import type { InForceView } from './in-force.js';
import type { Link } from './link.js';
import type { Shares } from './shares.js';

export interface Places {
  /** Off admits all, and shadow answers as if there were no cap. */
  reserve(nowMs: number): Slot | 'full' | 'stale';
  /** After `stale`: asks Redis for the part, or for the place itself where places are held one by one. */
  reserveLate(startedMs: number, onRedisError: OnRedisError): Promise<Slot | 'full' | 'away'>;
}

export interface PlacesOptions {
  link: Link;
  shares: Shares;
  view: InForceView;
  inFlight: InFlight;
  clock: Clock;
  deadlineMs: number;
}

export function createPlaces(options: PlacesOptions): Places {
  const { link, shares, view, inFlight, clock, deadlineMs } = options;

  function reserve(nowMs: number): Slot | 'full' | 'stale' {
    return view.mode === 'off' ? inFlight.force(nowMs) : inFlight.reserve(nowMs);
  }

  /** `local` keeps the last share; before the first, an even part of the cap that was last seen or given. */
  function lastShare(): number {
    if (!Number.isNaN(inFlight.share)) return inFlight.share;
    const cap = view.fallback().inFlightMax;
    return cap > 0 ? Math.max(1, Math.floor(cap / view.processes)) : Number.POSITIVE_INFINITY;
  }

  return {
    reserve,
    async reserveLate(startedMs, onRedisError) {
      let { slots } = shares;
      if (slots === null && link.up) {
        await shares.refresh(startedMs + deadlineMs);
        slots = shares.slots;
      }
      if (slots !== null) return slots.reserve(startedMs, onRedisError);
      const nowMs = clock.monotonicMs();
      const place = reserve(nowMs);
      if (place !== 'stale') return place;
      if (onRedisError === 'open' || view.shadow) return inFlight.force(nowMs);
      if (onRedisError === 'closed') return 'away';
      return inFlight.reserveWithin(lastShare(), nowMs);
    },
  };
}
