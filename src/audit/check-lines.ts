/** Proof of exported lines, one after another in flat memory: each limiter's chain, its gaps, its signed heads. Stage: audit → cli. */
import { createHash } from 'node:crypto';
import { type Chain, createChain } from '../actuate/chain.js';
import type { Fault, Heads, VerifyReport } from '../actuate/chain-report.js';
import { compareIds } from '../redis/stream-id.js';
import {
  type EntryLine,
  type ExportLine,
  type GapLine,
  type HeadLine,
  type Position,
  positionOf,
} from './export-line.js';
import { createIdCover } from './id-cover.js';
import type { Verifier } from './signature.js';

export interface LimiterCheck extends VerifyReport {
  /** Where the fault is: `audit-000002.jsonl:17`. */
  where?: string;
  /** Entries that come twice, the same both times: two exporters wrote, one of which had slept. */
  repeated: number;
  /** Signed heads that were checked against the chain. */
  signedHeads: number;
}

export interface LineCheck {
  line(line: ExportLine, where: string): void;
  /** A file begins whose predecessors are not here: the logs go on from these. */
  beginAfter(heads: Record<string, { id: string; hash: string }>): void;
  end(): LimiterCheck[];
}

interface Checked {
  chain: Chain;
  fault: Fault | null;
  where: string;
  last: Position | null;
  repeated: number;
  signedHeads: number;
}

/** Newest entries, of all limiters together, that a repetition may be of: a sleeper's batch is at most half as long. */
const RECENT = 2_000;

export function createLineCheck(options: {
  /** Only of this one. */
  limiter?: string | undefined;
  anchors: Heads;
  verifier: Verifier | null;
}): LineCheck {
  const { anchors, verifier } = options;
  const limiters = new Map<string, Checked>();
  /** `<limiter> <id>` → hash, and digest of all that the entry says. */
  const recent = new Map<string, { hash: string; digest: string }>();
  const cover = createIdCover();
  let signedBefore = false;

  const isAsked = (limiter: string) => options.limiter === undefined || limiter === options.limiter;

  function of(limiter: string): Checked {
    let found = limiters.get(limiter);
    if (found === undefined) {
      const chain = createChain(limiter, anchors.of(limiter));
      const none = { fault: null, where: '', last: null, repeated: 0, signedHeads: 0 };
      cover.begin(limiter);
      found = { chain, ...none };
      limiters.set(limiter, found);
    }
    return found;
  }

  function add(checked: Checked, { limiter, id, fields, wrong }: EntryLine): Fault | null {
    const { chain, last } = checked;
    const position = positionOf({ id, fields });
    const { hash, revision } = position;
    if (wrong !== undefined) return { id, revision, what: wrong };
    const key = `${limiter} ${id}`;
    const digest = createHash('sha256').update(JSON.stringify(fields)).digest('base64');
    if (recent.get(key)?.digest === digest && !chain.gapOpen) {
      checked.repeated++;
      return null;
    }
    if (last !== null && compareIds(id, last.id) <= 0 && !chain.gapOpen) {
      return { id, revision, what: `it stands after entry ${last.id}, out of order` };
    }
    const fault = chain.add(id, fields);
    checked.last = position;
    cover.add(limiter, id);
    recent.set(key, { hash, digest });
    if (recent.size > RECENT) recent.delete(recent.keys().next().value!);
    return fault;
  }

  function head(checked: Checked, line: HeadLine): Fault | null {
    const { chain } = checked;
    const signed = verifier?.check(line) ?? 'unsigned';
    const name = `head of ${timeOf(line.atMs)}`;
    const fault = (what: string): Fault => ({ id: line.id, revision: null, what });
    if (signed === 'wrong') return fault(`the ${name} is not signed by the key that it names`);
    if (chain.head !== line.hash) {
      // A sleeper's head comes late, and is of an entry before the newest.
      if (recent.get(`${line.limiter} ${line.id}`)?.hash === line.hash) return null;
      return fault(
        `the ${name} is not the hash of the entries before it: they were rewritten or taken out`,
      );
    }
    const { last } = checked;
    const differs =
      last !== null && (['id', 'epoch', 'revision'] as const).some((of) => last[of] !== line[of]);
    if (differs)
      return fault(
        `the ${name} says of its entry otherwise than the entry: one of them was edited`,
      );
    const ids = cover.take(line.limiter);
    if (ids !== undefined && line.ids !== undefined && ids !== line.ids) {
      return fault(
        `the ids of the entries before the ${name} are not those it was made of: a time was edited`,
      );
    }
    if (signed !== 'signed') return null;
    signedBefore = true;
    checked.signedHeads++;
    chain.prove(`the signed ${name}`);
    return null;
  }

  function gap(checked: Checked, line: GapLine): Fault | null {
    const signed = verifier?.check(line) ?? 'unsigned';
    if (signed === 'wrong' || (signed !== 'signed' && signedBefore)) {
      const by =
        signed === 'other'
          ? `signed by the key ${line.key}, which was not given`
          : 'not signed by the exporter';
      const what = `the gap before it is ${by}: entries were taken out, or this is not all of the keys`;
      return { id: line.before, revision: null, what };
    }
    checked.chain.gap(line);
    return null;
  }

  return {
    line(line, where) {
      if (line.kind === 'segment') return;
      if (!isAsked(line.limiter)) return;
      const checked = of(line.limiter);
      if (checked.fault !== null) return;
      if (line.kind === 'entry') checked.fault = add(checked, line);
      else if (line.kind === 'gap') checked.fault = gap(checked, line);
      else checked.fault = head(checked, line);
      checked.where = where;
    },
    beginAfter(heads) {
      for (const [limiter, place] of Object.entries(heads)) {
        if (!isAsked(limiter)) continue;
        of(limiter).chain.beginAfter(place);
        cover.forget(limiter);
      }
    },
    end() {
      // Of which nothing is left at all, too.
      for (const limiter of anchors.limiters) if (isAsked(limiter)) of(limiter);
      return [...limiters].map(([, { chain, fault, where, repeated, signedHeads }]) => {
        const found = fault ?? chain.end(null);
        const report = chain.report(found);
        const place = fault === null ? {} : { where };
        return { ...report, ...place, repeated, signedHeads };
      });
    },
  };
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
