/** `flyball audit --follow`: entries as they are written, through restarts of Redis, until Ctrl-C. Stage: cli. */
import { setTimeout as delay } from 'node:timers/promises';
import { matches } from '../actuate/audit.js';
import { isReadable, readEntry } from '../actuate/entry.js';
import { inStreamOrder } from '../audit/episodes.js';
import { inGroups, readFresh } from '../audit/new-entries.js';
import { EXIT } from '../errors.js';
import { describeFault } from '../faults.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { storedMs } from '../redis/stream-id.js';
import { type ListedEntry, readEntriesOf } from '../view/entries.js';
import { csvHead, csvRow } from './audit-csv.js';
import { type EntryChoice, type EntryForm, entryJson, entryText } from './audit-entries.js';
import { createInterrupt } from './interrupt.js';
import type { CliIo } from './output.js';
import { findLimiter, listLimiters, type Session } from './session.js';
import { clean, safeJsonLine } from './text.js';

const READ_EVERY_MS = 500;
/** Limiters that came since are looked for this often. */
const LIST_EVERY_MS = 5_000;
/** What stands already, before what comes. */
const FIRST_LIMIT = 10;

export async function follow(
  io: CliIo,
  session: Session,
  named: string | undefined,
  choice: EntryChoice,
  form: EntryForm,
): Promise<void> {
  const interrupt = createInterrupt();
  /** By limiter: its address and the id of the newest entry read. */
  const places = new Map<string, { address: LimiterAddress; lastId: string }>();
  const text = { diff: form.diff, withLimiter: named === undefined };
  let isAway = false;

  const show = (listed: ListedEntry[]) => {
    for (const each of listed) {
      if (form.csv) io.raw(csvRow(each));
      else io.out(io.flags.json ? jsonLine(each, form) : entryText(io, each, text));
    }
  };

  /** What stands is shown up to the newest entry of each; from there on it is read as it comes. */
  async function begin(): Promise<void> {
    const addresses = await addressesOf(session, named);
    for (const address of addresses) {
      const key = limiterKeys(address).audit;
      const newest = await session.redis.xrevrange(key, '+', '-', 'COUNT', 1);
      places.set(address.name, { address, lastId: newest[0]?.[0] ?? '0-0' });
    }
    const limit = form.limit ?? FIRST_LIMIT;
    const { listed } = await readEntriesOf(session.redis, addresses, { ...choice, limit });
    if (form.csv) io.raw(csvHead());
    const stood = ({ limiter, entry }: ListedEntry) =>
      inStreamOrder(entry, { id: places.get(limiter)!.lastId }) <= 0;
    show(listed.filter(stood).reverse());
  }

  let listAgainMs = performance.now() + LIST_EVERY_MS;
  async function read(): Promise<void> {
    if (named === undefined && performance.now() >= listAgainMs) {
      listAgainMs = performance.now() + LIST_EVERY_MS;
      for (const address of await listLimiters(session)) {
        // All of a limiter that is new is new.
        if (!places.has(address.name)) places.set(address.name, { address, lastId: '0-0' });
      }
    }
    const listed = await newEntries(session, places);
    const { sinceMs = 0 } = choice;
    show(
      listed.filter(
        ({ entry }) => !isReadable(entry) || (storedMs(entry) >= sinceMs && matches(entry, choice)),
      ),
    );
  }

  const { signal } = interrupt;
  // A command that waits for Redis must not keep who presses Ctrl-C.
  const ended = new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  try {
    await begin();
    io.say(io.ce.dim('Waiting for what comes; Ctrl-C ends it.'));
    while (!signal.aborted) {
      try {
        const reading = read();
        reading.catch(() => {});
        await Promise.race([reading, ended]);
        if (isAway) io.say(io.ce.dim('Redis is back.'));
        isAway = false;
      } catch (error) {
        if (!mayPass(error)) throw error;
        if (!isAway) io.warn(`Redis does not answer: ${clean(describeFault(error).message)}`);
        isAway = true;
      }
      await delay(READ_EVERY_MS, undefined, { signal }).catch(() => {});
    }
    io.exitCode = EXIT.interrupted;
  } finally {
    interrupt.release();
  }
}

function jsonLine({ limiter, entry }: ListedEntry, form: EntryForm): string {
  const record = isReadable(entry) ? entryJson(entry, form) : { limiter, unreadable: entry };
  return safeJsonLine({ schema: 1, ...record });
}

async function addressesOf(session: Session, named: string | undefined): Promise<LimiterAddress[]> {
  return named === undefined ? listLimiters(session) : [await findLimiter(session, named)];
}

/** A server that restarts: gone, loading, or a replica for a while. What a user may not do stays so. */
function mayPass(error: unknown): boolean {
  const { code } = describeFault(error);
  return code === 'FLYBALL_E_REDIS_LOST' || code === 'FLYBALL_E_REDIS_CANNOT_WRITE';
}

async function newEntries(
  { redis }: Session,
  places: Map<string, { address: LimiterAddress; lastId: string }>,
): Promise<ListedEntry[]> {
  const addresses = [...places.values()].map(({ address }) => address);
  const after = (limiter: string) => places.get(limiter)!.lastId;
  const groups = inGroups(redis, addresses);
  const read = await Promise.all(groups.map((group) => readFresh(redis, group, after)));
  const listed: ListedEntry[] = [];
  for (const { address, entries } of read.flatMap(({ fresh }) => fresh)) {
    const limiter = address.name;
    for (const [id, fields] of entries) listed.push({ limiter, entry: readEntry(id, fields) });
    const newest = entries.at(-1);
    if (newest !== undefined) places.set(limiter, { address, lastId: newest[0] });
  }
  return listed.sort((a, b) => inStreamOrder(a.entry, b.entry));
}
