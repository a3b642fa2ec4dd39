/** Proof of the audit log: every hash, link and revision, read oldest to newest in flat memory. Stage: actuate. */
import { GENESIS_HASH } from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { isOlder } from '../redis/write-order.js';
import { type RedisClient, readParams } from './actuator.js';
import { entryHash, isReadable, readEntry } from './entry.js';

export interface VerifyOptions {
  /** A head noted elsewhere (`hash` of an entry): the chain must hold it, and all before it is then proven. */
  anchor?: string;
  /** Entries read at once. Default 500. */
  pageSize?: number;
}

/**
 * - `proven`: the chain is whole from its first entry and holds the anchor.
 * - `consistent`: no fault is visible, but a rewrite of everything that follows an entry would look the same
 *   (no anchor was given), or the oldest entries have been trimmed.
 * - `broken`: `fault` names the first entry that is edited, missing or out of order.
 */
export interface VerifyReport {
  limiter: string;
  verdict: 'proven' | 'consistent' | 'broken';
  sentence: string;
  entries: number;
  changes: number;
  notes: number;
  /** The chain begins after entries that were trimmed. */
  trimmed: boolean;
  /** Newest hash: note it elsewhere as the anchor of a later verify. */
  head: string;
  fault?: { id: string | null; revision: number | null; what: string };
}

/** Checks the whole stream against its own hashes and against the params in force. */
export async function verifyAudit(
  redis: RedisClient,
  address: LimiterAddress,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const { pageSize = 500, anchor } = options;
  const key = limiterKeys(address).audit;
  // Read before the stream: a change written meanwhile must then show up in the stream, never the reverse.
  const params = await readParams(redis, address).then(
    (read) => read.params,
    (error: Error) => error,
  );
  const chain = createChain(address.name, anchor);
  const type = await redis.type(key);
  if (type !== 'stream' && type !== 'none') {
    return chain.report(atTheEnd(`the log is gone: its key holds a ${type}`));
  }
  let from = '-';
  for (;;) {
    const page = await redis.xrange(key, from, '+', 'COUNT', pageSize);
    for (const [id, fields] of page) {
      const fault = chain.add(id, fields);
      if (fault !== null) return chain.report(fault);
    }
    const last = page.at(-1);
    if (page.length < pageSize || last === undefined) break;
    from = `(${last[0]}`;
  }
  if (params instanceof Error) return chain.report(atTheEnd(params.message));
  return chain.report(chain.end(params));
}

type Fault = NonNullable<VerifyReport['fault']>;

function atTheEnd(what: string): Fault {
  return { id: null, revision: null, what };
}

function createChain(limiter: string, anchor: string | undefined) {
  let head: string | null = null;
  let lastChange: { epoch: number; revision: number } | null = null;
  let changes = 0;
  let notes = 0;
  let trimmed = false;
  let anchored = anchor === GENESIS_HASH;

  function add(id: string, fields: readonly string[]): Fault | null {
    const entry = readEntry(id, fields);
    if (!isReadable(entry)) {
      return { id, revision: entry.revision, what: `it cannot be read, ${entry.why}` };
    }
    const fault = (what: string): Fault => ({ id, revision: entry.revision, what });
    if (head === null) trimmed = entry.prev !== GENESIS_HASH;
    else if (entry.prev !== head) {
      return fault('the entry before it is missing or was changed: its link does not match');
    }
    if (entryHash(entry.prev, entry.text) !== entry.hash) {
      return fault('its body was changed: the hash does not match');
    }
    const { body } = entry;
    // A note's fields say what was in force when it was stored, its body what its writer had seen.
    const moved = body.epoch !== entry.epoch || body.revision !== entry.revision;
    if (
      body.kind !== entry.kind ||
      body.limiter !== limiter ||
      (entry.kind === 'change' && moved)
    ) {
      return fault('its fields differ from its hashed body');
    }
    head = entry.hash;
    if (head === anchor) anchored = true;
    if (entry.kind === 'note') {
      notes++;
      return null;
    }
    changes++;
    const before = lastChange;
    lastChange = { epoch: entry.epoch, revision: entry.revision };
    if (before === null) {
      // Params are created without a before, so a change of something has others before it.
      if (trimmed || body.before === null) return null;
      return fault(`the log begins with revision ${entry.revision}: all before it is missing`);
    }
    if (entry.epoch < before.epoch) {
      return fault(`epoch ${entry.epoch} follows the later epoch ${before.epoch}`);
    }
    if (entry.epoch === before.epoch && entry.revision === before.revision) {
      return fault(`revision ${entry.revision} has a second entry`);
    }
    if (entry.epoch === before.epoch && entry.revision !== before.revision + 1) {
      return fault(
        `revision ${before.revision + 1} has no entry: ${entry.revision} follows ${before.revision}`,
      );
    }
    return null;
  }

  /** What only the end shows: entries cut off at the newest side, or an anchor that never came. */
  function end(params: { epoch: number; revision: number } | null): Fault | null {
    if (params !== null && (lastChange === null || isOlder(lastChange, params))) {
      return {
        id: null,
        revision: params.revision,
        what: `revision ${params.revision} (epoch ${params.epoch}) is in force but has no entry`,
      };
    }
    if (anchor !== undefined && !anchored) {
      return {
        id: null,
        revision: null,
        what: trimmed
          ? 'the anchor is not among the entries that are left: it was trimmed, or the chain was rewritten'
          : 'the anchor is not in the chain: the entries were rewritten',
      };
    }
    return null;
  }

  function report(fault: Fault | null): VerifyReport {
    const base = { limiter, entries: changes + notes, changes, notes, trimmed };
    const counted = `${changes} changes and ${notes} notes`;
    if (fault !== null) {
      const place = fault.id === null ? 'at the newest end' : `at entry ${fault.id}`;
      const revision = fault.revision === null ? '' : ` (revision ${fault.revision})`;
      return {
        ...base,
        verdict: 'broken',
        sentence: `${limiter}: broken ${place}${revision}: ${fault.what.replace(/\.$/, '')}.`,
        head: head ?? GENESIS_HASH,
        fault,
      };
    }
    const proven = anchored && !trimmed;
    const why = trimmed
      ? 'the oldest entries have been trimmed'
      : 'no anchor was given, so a rewrite of all that follows an entry cannot be ruled out';
    return {
      ...base,
      verdict: proven ? 'proven' : 'consistent',
      sentence: proven
        ? `${limiter}: proven up to the anchor: ${counted}, each hash, link and revision checked.`
        : `${limiter}: consistent, not proven: ${counted} checked; ${why}.`,
      head: head ?? GENESIS_HASH,
    };
  }

  return { add, end, report };
}
