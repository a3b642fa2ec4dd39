/** One look at Redis for all who watch: limiters read in turn, what changed told to each channel; nothing is read for nobody. Stage: api. */
import type { Clock } from '../clock.js';
import { describeFault } from '../faults.js';
import type { Logger } from '../log.js';
import type { LimiterAddress } from '../redis/keys.js';
import { entryRecord } from '../view/entry.js';
import { listLimiters, type Session } from '../view/limiters.js';
import { createOwnStatuses, type OwnStatuses } from '../view/own-statuses.js';
import { pointOf } from '../view/series.js';
import type { StatusView } from '../view/status.js';
import { statusView } from '../view/status.js';
import { type Channel, createChannel, type Watcher } from './channel.js';
import { createRing, type Ring } from './ring.js';
import { createRota } from './rota.js';
import { createShown } from './shown.js';
import type { AuditRecord, LimiterPoint, TickEvent } from './types.js';
import { freshlyWatched, readsAlike, type Watched } from './watched.js';

export interface Watch {
  readonly clients: number;
  readonly ring: Ring;
  /**
   * Tells a client of all limiters (null) or of one. @returns how it leaves; null: too many watch.
   */
  join(
    limiter: LimiterAddress | null,
    lastId: string | undefined,
    client: Watcher,
  ): (() => void) | null;
  /** Who follows all has these in sight: they are looked at each time, for a while. @returns how many are known */
  show(limiters: readonly string[]): number;
  close(): void;
}

export interface WatchOptions {
  session: Session;
  clock: Clock;
  log: Logger;
  /** How often Redis is looked at. Default 1 s. */
  everyMs?: number;
  mostClients?: number;
  onClients?: (clients: number) => void;
  /** Told before those who follow: what they ask next must be as new. */
  onNews?: () => void;
  /** What this daemon tells of limiters that it leads. */
  own?: OwnStatuses;
}

const MOST_CLIENTS = 64;
/** Who lost their connection finds what they missed for so long after the last has gone. */
const LINGER_MS = 30_000;
/** New limiters are seen after so many looks. */
const LIST_EVERY = 5;

export function createWatch(options: WatchOptions): Watch {
  const { session, clock, log, everyMs = 1000, mostClients = MOST_CLIENTS } = options;
  const { onClients, onNews, own = createOwnStatuses(clock) } = options;
  const ring = createRing();
  const fresh = (address: LimiterAddress) => freshlyWatched(session.redis, address, own.of);
  const watched = new Map<string, Watched>();
  /** '' is the channel of all. */
  const channels = new Map<string, Channel>();
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let looks = 0;
  /** Of channels that nobody hears, by name: since when. */
  const idleSinceMs = new Map<string, number>();
  /** Of what each channel shows, by name: of when it is. While nobody hears it nothing of it is read. */
  const seenAtMs = new Map<string, number>();
  let last: TickEvent = { atMs: 0, lookMs: everyMs, everyMs, redisAway: null };

  const clients = () => [...channels.values()].reduce((sum, one) => sum + one.clients, 0);
  const hears = (name: string) => (channels.get(name)?.clients ?? 0) > 0;
  const shown = createShown(clock);
  const rota = createRota({ watched, hears, shown, own });

  function channelOf(name: string): Channel {
    let channel = channels.get(name);
    if (channel === undefined) {
      channel = createChannel(() => ({
        ...last,
        atMs: seenAtMs.get(name) ?? last.atMs,
        limiters: [...watched.values()].flatMap(({ address, view }) =>
          view !== null && (name === '' || name === address.name) ? [view] : [],
        ),
      }));
      channels.set(name, channel);
    }
    return channel;
  }

  async function list(): Promise<string[]> {
    const found = new Map((await listLimiters(session)).map((one) => [one.name, one]));
    const gone = [...watched.keys()].filter((name) => !found.has(name));
    for (const name of gone) {
      watched.delete(name);
      ring.forget(name);
    }
    for (const [name, address] of found) if (!watched.has(name)) watched.set(name, fresh(address));
    return gone;
  }

  /** @returns the channels whose rows were looked at: who joined another one meanwhile waits for the next look. */
  async function look(): Promise<Channel[]> {
    const gone = looks++ % LIST_EVERY === 0 || watched.size === 0 ? await list() : [];
    const changed: StatusView[] = [];
    const points: LimiterPoint[] = [];
    const entries: AuditRecord[] = [];
    let atMs = last.atMs;
    let fault: unknown = null;
    let read = 0;
    const heard = [...channels].filter(([name]) => hears(name));
    await Promise.all(
      rota.take().map(async (one) => {
        own.read(one.address.name);
        try {
          const { facts, entries: found } = await one.reader.read();
          const view = statusView(facts);
          const point = pointOf(facts, view);
          read += 1;
          atMs = Math.max(atMs, Math.floor(facts.nowMs));
          ring.add(one.address.name, point);
          points.push({ limiter: one.address.name, ...point });
          entries.push(...found.map((entry) => entryRecord(entry, false)));
          if (one.told === null || !readsAlike(one.told, view)) {
            changed.push(view);
            one.told = view;
          }
          one.view = view;
        } catch (error) {
          // Read anew when it can be read again.
          one.told = null;
          one.reader = fresh(one.address).reader;
          fault = error;
        }
      }),
    );
    // One that cannot be read is not Redis gone.
    if (read === 0 && fault !== null) throw fault;
    if (changed.length + gone.length + entries.length > 0) onNews?.();
    last = {
      atMs: atMs === 0 ? clock.nowMs() : atMs,
      lookMs: everyMs,
      everyMs: everyMs * rota.looks,
      redisAway: null,
    };
    tell(
      changed,
      gone,
      points,
      entries.sort((a, b) => a.atMs - b.atMs),
    );
    for (const [name, channel] of heard) {
      seenAtMs.set(name, last.atMs);
      channel.tell('tick', name === '' ? last : { ...last, everyMs });
    }
    return heard.map(([, channel]) => channel);
  }

  function tell(
    limiters: StatusView[],
    gone: string[],
    points: LimiterPoint[],
    entries: AuditRecord[],
  ): void {
    for (const [name, channel] of channels) {
      const own = (limiter: string) => name === '' || name === limiter;
      const rows = limiters.filter((view) => own(view.limiter));
      const dots = name === '' ? [] : points.filter(({ limiter }) => own(limiter));
      const left = gone.filter(own);
      const told = entries.filter(({ limiter }) => own(limiter));
      const { atMs } = last;
      if (rows.length + left.length + dots.length > 0) {
        channel.tell('limiters', { atMs, limiters: rows, gone: left, points: dots });
      }
      if (told.length > 0) channel.tell('audit', { entries: told });
    }
  }

  async function turn(): Promise<void> {
    leaveIdle();
    if (channels.size === 0) return rest();
    // From before the first look on: what changes after it is heard.
    if (looks === 0) own.want(new Set(), hears(''));
    let looked = [...channels.values()];
    try {
      looked = await look();
    } catch (error) {
      last = { ...last, redisAway: describeFault(error).message };
      for (const channel of channels.values()) channel.tell('tick', last);
      log.debug({ event: 'watch_failed', err: error });
    }
    for (const channel of looked) channel.ready();
    own.want(rota.next(), hears(''));
    if (!closed) timer = setTimeout(() => void turn(), everyMs);
  }

  function leaveIdle(): void {
    const nowMs = clock.monotonicMs();
    for (const [name, channel] of channels) {
      const sinceMs = channel.clients > 0 ? null : (idleSinceMs.get(name) ?? nowMs);
      if (sinceMs === null) idleSinceMs.delete(name);
      else if (nowMs - sinceMs < LINGER_MS) idleSinceMs.set(name, sinceMs);
      else {
        channels.delete(name);
        idleSinceMs.delete(name);
        seenAtMs.delete(name);
      }
    }
  }

  /** Forgets all: what is not looked at any more is not known. */
  function rest(): void {
    timer = null;
    own.want(new Set(), false);
    for (const [name, { address }] of watched) watched.set(name, fresh(address));
    looks = 0;
  }

  return {
    ring,
    get clients() {
      return clients();
    },
    join(address, lastId, client) {
      if (closed || clients() >= mostClients) return null;
      if (address !== null && !watched.has(address.name)) watched.set(address.name, fresh(address));
      const leave = channelOf(address?.name ?? '').join(lastId, client);
      onClients?.(clients());
      if (timer === null) {
        timer = setTimeout(() => void turn(), 0);
      }
      return () => {
        leave();
        onClients?.(clients());
      };
    },
    show(limiters) {
      const known = limiters.filter((name) => watched.has(name));
      shown.see(known);
      return known.length;
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      for (const channel of channels.values()) channel.close();
    },
  };
}
