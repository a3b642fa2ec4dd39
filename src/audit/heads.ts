/** Heads kept elsewhere, as anchors of a proof: the newest of each limiter, of files that the exporter wrote. Stage: audit → cli. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Heads } from '../actuate/chain-report.js';
import { FlyballError } from '../errors.js';
import { compareIds } from '../redis/stream-id.js';
import { timeOf } from './check-lines.js';
import { type HeadLine, parseLine } from './export-line.js';
import { HEADS_FILE, linesOf } from './segments.js';
import type { Verifier } from './signature.js';

export const NO_HEADS: Heads = { limiters: [], of: () => [] };

/**
 * The newest head of each limiter in a file of them, or in the folder of an export. With keys each must be signed by
 * one of them; without, a file that a person names is believed.
 * @param weak the file lies beside what is to be proven: it can show a fault, and proves only what is signed
 */
export async function readHeads(
  path: string,
  verifier: Verifier | null,
  weak = false,
): Promise<Heads> {
  const newest = new Map<string, HeadLine>();
  const file = (await stat(path).catch(unreadable(path))).isDirectory()
    ? join(path, HEADS_FILE)
    : path;
  try {
    for await (const { text, torn } of linesOf(file)) {
      const line = parseLine(text);
      if (line === null && torn) break;
      if (line?.kind !== 'head') throw notHeads(path, `${file} has a line that is no head`);
      const before = newest.get(line.limiter);
      if (before === undefined || compareIds(line.id, before.id) >= 0)
        newest.set(line.limiter, line);
    }
  } catch (error) {
    if (error instanceof FlyballError) throw error;
    throw notHeads(path, (error as Error).message);
  }
  const signed = (head: HeadLine) => verifier?.check(head) ?? 'unsigned';
  for (const head of newest.values()) {
    const found = signed(head);
    if (found === 'wrong' || (!weak && verifier !== null && found !== 'signed')) {
      throw notHeads(path, `the head of ${head.limiter} is not signed by the key given`);
    }
  }
  return {
    limiters: [...newest.keys()],
    of(limiter) {
      const head = newest.get(limiter);
      if (head === undefined) return [];
      const isSigned = signed(head) === 'signed';
      const name = `the ${isSigned ? 'signed ' : ''}head of ${timeOf(head.atMs)}`;
      return [{ hash: head.hash, id: head.id, name, ...(weak && !isSigned && { weak: true }) }];
    },
  };
}

function unreadable(path: string) {
  return (error: Error): never => {
    throw notHeads(path, error.message);
  };
}

function notHeads(path: string, fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_AUDIT_HEADS',
    `the heads in ${path} cannot be used: ${fault}. Give a heads.jsonl that an exporter wrote, or a folder with one, and the public key that belongs to it.`,
  );
}
