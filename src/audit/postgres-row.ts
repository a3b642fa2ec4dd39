/** What of an exported line is a column of the table, to be asked for in SQL. Stage: audit → daemon. */
import { isReadable, readEntry } from '../actuate/entry.js';
import { storedMs } from '../redis/stream-id.js';
import { entryText, type HeadLine, type Position, positionOf } from './export-line.js';
import type { Signer } from './signature.js';
import type { ExportItem } from './sink.js';

export interface Row {
  limiter: string;
  kind: 'change' | 'note' | 'gap' | 'head';
  position: Position;
  atMs: number;
  actor: string | null;
  reason: string | null;
  sentence: string | null;
  line: string;
}

const NOBODY = { actor: null, reason: null, sentence: null };

export function itemRow(item: ExportItem, signer: Signer | null): Row {
  if (item.kind === 'gap') {
    const { limiter, before, prev, atMs } = item.gap;
    const position = { id: before, hash: prev, epoch: 0, revision: 0 };
    const line = JSON.stringify(signer?.sign(item.gap) ?? item.gap);
    return { limiter, kind: 'gap', position, atMs, ...NOBODY, line };
  }
  const { limiter, id, fields } = item;
  const entry = readEntry(id, fields);
  const position = positionOf(item);
  const base = { limiter, position, atMs: storedMs({ id }), line: entryText(limiter, id, fields) };
  // Edited from outside: kept as it is, for whoever verifies.
  if (!isReadable(entry)) {
    return {
      ...base,
      position: { ...position, hash: plain(position.hash) },
      kind: 'note',
      ...NOBODY,
    };
  }
  const { actor, reason, sentence } = entry.body;
  const told = { actor: plain(actor.name), reason: plain(reason), sentence: plain(sentence) };
  return { ...base, kind: entry.kind, ...told };
}

export function headRow(head: HeadLine, signer: Signer | null): Row {
  const { limiter, id, hash, epoch, revision, atMs } = head;
  const line = JSON.stringify(signer?.sign(head) ?? head);
  return { limiter, kind: 'head', position: { id, hash, epoch, revision }, atMs, ...NOBODY, line };
}

/** PostgreSQL's text holds no NUL. */
function plain(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD');
}
