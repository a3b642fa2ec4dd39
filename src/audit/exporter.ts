/** Carries the audit logs of all limiters to one place as they grow, from where that place was left, again until it is there. Stage: audit → daemon. */
import type { Clock } from '../clock.js';
import { type Logger, redactUrl } from '../log.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { tellExported } from '../redis/retention.js';
import type { RedisClient } from '../redis/run-script.js';
import { compareIds, storedMs } from '../redis/stream-id.js';
import { createExportFault } from './export-fault.js';
import { type HeadLine, type Position, positionOf } from './export-line.js';
import type { ExportState } from './export-state.js';
import { createIdCover } from './id-cover.js';
import {
  type Fresh,
  findGap,
  follows,
  inGroups,
  readFresh,
  type StreamEntry,
} from './new-entries.js';
import { coverAgain, oldestWaiting } from './opened-again.js';
import { withRetired } from './retired-logs.js';
import type { ExportItem, Sink } from './sink.js';

export interface ExporterOptions {
  redis: RedisClient;
  prefix: string;
  sink: Sink;
  limiters: () => Promise<LimiterAddress[]>;
  clock: Clock;
  log: Logger;
  /** Told of what was done, for metrics. */
  seen: {
    exported(entries: number): void;
    failed(): void;
    /** Age of the oldest entry that is not exported yet, s. */
    lag(seconds: number): void;
    writes(yes: boolean): void;
  };
}

export interface Exporter {
  readonly kind: Sink['kind'];
  readonly name: string;
  /** What keeps it from exporting now; null: nothing, or another daemon does it. */
  readonly fault: string | null;
  /** As other daemons are told of it. */
  state(): ExportState;
  /** One round: all that is new. Never rejects. */
  round(): Promise<void>;
  /** Newest hashes, positions, and what only a look at newest entries and at ended canaries shows; once a minute. Never rejects. */
  minute(): Promise<void>;
  close(): Promise<void>;
}

/** Daemons hear it from each other several times in a few seconds. */
const MOST_OF_A_FAULT = 300;

export function createExporter(options: ExporterOptions): Exporter {
  const { redis, prefix, sink, limiters, clock, log, seen } = options;
  const { nowMs } = clock;
  const { kind } = sink;
  const fault = createExportFault(sink, log, clock);
  let writes = false;
  /** By limiter: the head that was last exported. */
  const heads = new Map<string, string>();
  const cover = createIdCover();
  /** When the oldest entry was stored that is still to be exported. */
  let oldestMs: number | null = null;
  /** By limiter: id of the newest entry that was seen to be there. */
  const reached = new Map<string, string>();
  /** What stands in the place is not known any more. */
  let anew = true;
  let last: ExportState['last'] = null;
  let headsMs: number | null = null;

  async function acquire(): Promise<boolean> {
    const now = await sink.acquire();
    if (now && !writes) {
      anew = true;
      heads.clear();
      last = null;
      log.info(
        { event: 'audit_exporting', exporter: sink.name },
        `Audit logs go to ${kind} from here.`,
      );
    }
    writes = now;
    seen.writes(now);
    return now;
  }

  async function begin(addresses: readonly LimiterAddress[]): Promise<void> {
    cover.forget();
    for (const address of addresses) {
      const { name } = address;
      const stands = { headed: sink.headed(name), position: sink.position(name) };
      await coverAgain(redis, address, cover, stands);
    }
    anew = false;
  }

  async function drain(addresses: readonly LimiterAddress[]): Promise<void> {
    for (const group of inGroups(redis, addresses)) {
      for (let more = true; more; ) {
        const after = (limiter: string) => sink.position(limiter)?.id ?? '0';
        const { fresh, full } = await readFresh(redis, group, after);
        for (const each of fresh) await exportLog(each);
        more = full;
      }
    }
  }

  async function exportLog({ address, entries }: Fresh): Promise<void> {
    const limiter = address.name;
    const [first] = entries;
    if (first === undefined) return;
    oldestMs ??= storedMs({ id: first[0] });
    const items: ExportItem[] = [];
    let position = sink.position(limiter);
    for (const entry of entries) {
      if (!follows(position, entry)) {
        await appendAll(items);
        return goOnElsewhere(address, entry);
      }
      const [id, fields] = entry;
      items.push({ kind: 'entry', limiter, id, fields });
      position = positionOf({ id, fields });
    }
    await appendAll(items);
  }

  async function appendAll(items: readonly ExportItem[]): Promise<void> {
    if (items.length === 0) return;
    const entries = items.filter((item) => item.kind === 'entry');
    for (const { limiter } of entries) if (sink.position(limiter) === null) cover.begin(limiter);
    await sink.append(items);
    for (const entry of entries) {
      cover.add(entry.limiter, entry.id);
      isThere(entry.limiter, positionOf(entry));
    }
    seen.exported(entries.length);
  }

  function isThere(limiter: string, { id, epoch, revision }: Position): void {
    reached.set(limiter, id);
    const atMs = storedMs({ id });
    if (last === null || last.atMs <= atMs) last = { limiter, epoch, revision, atMs };
  }

  /** The gap and the entry after it go in one write: neither stands alone. */
  async function goOnElsewhere(address: LimiterAddress, entry: StreamEntry): Promise<void> {
    const limiter = address.name;
    const holds = (hashes: readonly string[]) => sink.holds(limiter, hashes);
    const { gap, from } = await findGap(redis, address, sink.position(limiter), entry, holds);
    const [next] = (await redis.xrange(limiterKeys(address).audit, from, from)) as StreamEntry[];
    if (next === undefined) throw new Error(`the log of ${limiter} changed while it was read`);
    const level = gap.why === 'unlinked' ? 'error' : 'warn';
    log[level](
      { event: 'audit_gap', limiter, why: gap.why, after: gap.after, before: gap.before },
      `The audit log of ${limiter} does not go on where its export ended (${gap.why}); the export says so.`,
    );
    const told: ExportItem = { kind: 'gap', gap: { ...gap, atMs: nowMs() } };
    await appendAll([told, { kind: 'entry', limiter, id: next[0], fields: next[1] }]);
  }

  /** Entries that were stored under older ids are not read by `drain`: the newest one shows them. */
  async function lookAtNewest(address: LimiterAddress): Promise<void> {
    const position = sink.position(address.name);
    const key = limiterKeys(address).audit;
    const [newest] = (await redis.xrevrange(key, '+', '-', 'COUNT', 1)) as StreamEntry[];
    if (newest === undefined || position === null) return;
    const [id, fields] = newest;
    if (compareIds(id, position.id) > 0) return;
    if (positionOf({ id, fields }).hash === position.hash) return;
    await goOnElsewhere(address, newest);
  }

  async function tellHeads(addresses: readonly LimiterAddress[]): Promise<void> {
    const moved: HeadLine[] = [];
    for (const address of addresses) {
      const { name: limiter } = address;
      const position = sink.position(limiter);
      if (position === null) continue;
      isThere(limiter, position);
      await tellExported(redis, limiterKeys(address), sink.name, position.id, nowMs());
      if (heads.get(limiter) === position.hash) continue;
      const ids = cover.take(limiter);
      const head = { v: 1, kind: 'head', prefix, limiter, ...position, atMs: nowMs() } as const;
      moved.push(ids === undefined ? head : { ...head, ids });
    }
    if (moved.length === 0) return;
    await sink.appendHeads(moved);
    headsMs = nowMs();
    for (const { limiter, hash } of moved) heads.set(limiter, hash);
  }

  /** Whatever fails is tried again, from what the place has then. */
  async function trying(
    work: (addresses: readonly LimiterAddress[]) => Promise<void>,
  ): Promise<void> {
    if (oldestMs !== null) seen.lag(Math.max(0, (nowMs() - oldestMs) / 1000));
    if (!fault.isDue()) return;
    try {
      if (await acquire()) {
        const addresses = await limiters();
        if (anew) await begin(await withRetired(redis, addresses));
        await work(addresses);
      }
      oldestMs = null;
      seen.lag(0);
      fault.worked();
    } catch (error) {
      seen.failed();
      fault.failed(error as Error);
      // What came of it is not known.
      anew = true;
      await sink.reopen();
      oldestMs = await limiters()
        .then((known) => withRetired(redis, known))
        .then((all) => oldestWaiting(redis, all, sink.name, reached))
        .catch(() => oldestMs);
    }
  }

  return {
    kind,
    name: sink.name,
    get fault() {
      return fault.text;
    },
    state: () => ({
      ...{ kind, to: sink.to, writes, signedBy: sink.signedBy, headsMs, last },
      // Who fails to begin may be the only one.
      lagMs: writes || fault.text !== null ? Math.max(0, nowMs() - (oldestMs ?? nowMs())) : null,
      fault: fault.text === null ? null : redactUrl(fault.text).slice(0, MOST_OF_A_FAULT),
    }),
    round: () => trying(drain),
    minute: () =>
      trying(async (registered) => {
        const addresses = await withRetired(redis, registered);
        for (const address of addresses) await lookAtNewest(address);
        await drain(addresses);
        await tellHeads(addresses);
      }),
    async close() {
      await sink.release();
    },
  };
}
