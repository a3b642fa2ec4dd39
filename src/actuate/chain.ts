/** The chain of one limiter's entries, checked one after another in flat memory: hashes, links, revisions, anchors. Stage: actuate, audit. */
import { GENESIS_HASH } from '../redis/calls.js';
import { compareIds } from '../redis/stream-id.js';
import { isOlder } from '../redis/write-order.js';
import {
  type Anchor,
  type ChainFacts,
  type Fault,
  type GapLine,
  gapSentence,
  reportOf,
  type VerifyReport,
} from './chain-report.js';
import { AUDIT_TRIMMED, entryHash, isReadable, readEntry, type StoredEntry } from './entry.js';

export interface Chain {
  /** The newest hash; null before the first entry. */
  readonly head: string | null;
  /** A gap was told, and the entry after it has not come yet. */
  readonly gapOpen: boolean;
  /** One entry after another, oldest first. */
  add(id: string, fields: readonly string[]): Fault | null;
  /** The next entry goes on elsewhere, as who exported it saw it. */
  gap(gap: GapLine): void;
  /** The entries up to this one are kept elsewhere. */
  beginAfter(place: { id: string; hash: string }): void;
  /** A signature over the newest hash: all up to it is proven. */
  prove(by: string): void;
  /** What only the end shows: entries cut off at the newest side, or an anchor that never came. */
  end(params: { epoch: number; revision: number } | null): Fault | null;
  report(fault: Fault | null): VerifyReport;
}

/** Gaps that are named one by one, so that an export full of them stays small. */
const GAPS_NAMED = 20;

export function createChain(limiter: string, anchors: readonly Anchor[] = []): Chain {
  const facts: ChainFacts = {
    ...{ limiter, changes: 0, notes: 0, trimmed: false, trimNote: null, first: null },
    ...{ head: null, proven: null, gaps: [], gapCount: 0 },
  };
  let last: { id: string; epoch: number } | null = null;
  let lastChange: { epoch: number; revision: number } | null = null;
  let opened: GapLine | null = null;
  let begunAfter: string | null = null;
  /** A gap was met since the last change: revisions are missing. */
  let jumped = false;
  const open = new Set(anchors);
  for (const anchor of anchors) if (anchor.hash === GENESIS_HASH) prove(anchor.name, anchor);

  function prove(by: string, anchor?: Anchor): void {
    if (anchor !== undefined) open.delete(anchor);
    facts.proven = { id: last?.id ?? '0-0', by, at: facts.changes + facts.notes };
  }

  function add(id: string, fields: readonly string[]): Fault | null {
    const entry = readEntry(id, fields);
    if (!isReadable(entry)) {
      return { id, revision: entry.revision, what: `it cannot be read, ${entry.why}` };
    }
    const gap = opened;
    opened = null;
    const what =
      (gap === null ? wrongLink(entry) : wrongGap(entry, gap)) ??
      wrongContent(entry, limiter) ??
      wrongFields(entry, fields) ??
      (entry.kind === 'change' ? wrongRevision(entry) : null);
    if (what !== null) return { id, revision: entry.revision, what };
    facts.first ??= { id, prev: entry.prev };
    facts.head = entry.hash;
    last = { id, epoch: entry.epoch };
    if (entry.kind === 'change') facts.changes++;
    else facts.notes++;
    if (saysTrimmed(entry, facts.first.prev)) facts.trimNote = id;
    for (const anchor of open) {
      if (anchor.hash !== entry.hash) continue;
      if (anchor.weak) open.delete(anchor);
      else prove(anchor.name, anchor);
    }
    return null;
  }

  function wrongLink(entry: StoredEntry): string | null {
    if (facts.head === null) facts.trimmed = entry.prev !== GENESIS_HASH;
    else if (entry.prev !== facts.head) {
      return 'the entry before it is missing or was changed: its link does not match';
    }
    return null;
  }

  /** What an export says of a gap must fit the entry that follows it. */
  function wrongGap(entry: StoredEntry, gap: GapLine): string | null {
    const { why, after, before } = gap;
    if (entry.id !== before || entry.prev !== gap.prev || (last?.id ?? null) !== after) {
      return 'the gap before it names other entries: something was edited or taken out';
    }
    if (why === 'unlinked') {
      return 'the entry before it was missing or changed in Redis already when it was exported';
    }
    if (why === 'anew' && entry.prev !== GENESIS_HASH) return 'it does not begin a log anew';
    if (last === null) facts.trimmed = true;
    else if (why !== 'trimmed' && entry.epoch <= last.epoch) {
      return `what Redis held after entry ${after} was replaced without a new epoch: it was rewritten`;
    }
    facts.gapCount++;
    if (facts.gaps.length < GAPS_NAMED) {
      facts.gaps.push({ why, after, before, sentence: gapSentence(gap, lastChange, entry) });
    }
    jumped = true;
    return null;
  }

  /** What stands beside the body is under no hash. A note tells what is in force: what the change before it left, or no params. */
  function wrongFields(entry: StoredEntry, fields: readonly string[]): string | null {
    const { kind, epoch, revision, hash, prev, text } = entry;
    const written = ['kind', kind, 'epoch', `${epoch}`, 'revision', `${revision}`];
    written.push('hash', hash, 'prev', prev, 'body', text);
    if (fields.length !== written.length || written.some((part, i) => part !== fields[i])) {
      return 'its fields are not written as those of an audit entry are';
    }
    if (kind === 'change' || lastChange === null || jumped || (epoch === 0 && revision === 0)) {
      return null;
    }
    if (epoch === lastChange.epoch && revision === lastChange.revision) return null;
    return `its fields say that revision ${revision} was in force, and the change before it is ${lastChange.revision}`;
  }

  function wrongRevision({ epoch, revision, body }: StoredEntry): string | null {
    const before = lastChange;
    const gone = jumped;
    lastChange = { epoch, revision };
    jumped = false;
    if (before === null) {
      // Params are created without a before, so a change of something has others before it.
      if (facts.trimmed || gone || body.before === null) return null;
      return `the log begins with revision ${revision}: all before it is missing`;
    }
    if (epoch < before.epoch) return `epoch ${epoch} follows the later epoch ${before.epoch}`;
    if (epoch > before.epoch) return null;
    if (revision === before.revision) return `revision ${revision} has a second entry`;
    if (revision === before.revision + 1 || (gone && revision > before.revision)) return null;
    return `revision ${before.revision + 1} has no entry: ${revision} follows ${before.revision}`;
  }

  function end(params: { epoch: number; revision: number } | null): Fault | null {
    if (params !== null && (lastChange === null || isOlder(lastChange, params))) {
      const { epoch, revision } = params;
      const what = `revision ${revision} (epoch ${epoch}) is in force but has no entry`;
      return { id: null, revision, what };
    }
    for (const anchor of open) {
      const what = whyNotHeld(anchor);
      if (what !== null) return { id: null, revision: null, what };
    }
    return null;
  }

  function whyNotHeld({ id, name }: Anchor): string | null {
    const { trimmed, first } = facts;
    if (id === undefined) {
      return trimmed
        ? `${name} is not among the entries that are left: it was trimmed, or the chain was rewritten`
        : `${name} is not in the chain: the entries were rewritten`;
    }
    // Older than what is left: of it nothing can be said.
    if (begunAfter !== null && compareIds(id, begunAfter) <= 0) return null;
    if (trimmed && first !== null && compareIds(id, first.id) < 0) return null;
    if (last === null || compareIds(id, last.id) > 0) {
      return `${name} is of entry ${id}, which is missing, as is all after ${last?.id ?? 'the beginning'}`;
    }
    return `${name} is of entry ${id}, which is not in the chain: the entries were rewritten`;
  }

  return {
    get head() {
      return facts.head;
    },
    get gapOpen() {
      return opened !== null;
    },
    add,
    gap(gap) {
      opened = gap;
    },
    beginAfter({ id, hash }) {
      facts.head = hash;
      facts.trimmed = true;
      begunAfter = id;
      for (const anchor of open) if (anchor.hash === hash) open.delete(anchor);
    },
    prove: (by) => prove(by),
    end,
    report: (fault) => reportOf(facts, fault),
  };
}

function wrongContent(entry: StoredEntry, limiter: string): string | null {
  if (entryHash(entry.prev, entry.text) !== entry.hash) {
    return 'its body was changed: the hash does not match';
  }
  const { body } = entry;
  // A note's fields say what was in force when it was stored, its body what its writer had seen.
  const moved = body.epoch !== entry.epoch || body.revision !== entry.revision;
  const differs =
    body.kind !== entry.kind || body.limiter !== limiter || (entry.kind === 'change' && moved);
  return differs ? 'its fields differ from its hashed body' : null;
}

/** The note of a trim, which names the last hash that it took away. */
function saysTrimmed({ kind, body }: StoredEntry, hash: string): boolean {
  return kind === 'note' && body.reason === AUDIT_TRIMMED && body.detail?.throughHash === hash;
}
