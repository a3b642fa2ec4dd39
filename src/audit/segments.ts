/** The files of an exported log: their names and order, and their lines one by one, of plain or gzipped ones. Stage: audit. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { FlyballError } from '../errors.js';
import { parseLine, type SegmentLine } from './export-line.js';

export interface Segment {
  n: number;
  /** File name; with `.gz` when a person has packed it. */
  file: string;
  path: string;
}

export const HEADS_FILE = 'heads.jsonl';
const SEGMENT = /^audit-(\d{6,})\.jsonl(\.gz)?$/;
/** Longer ones are none of ours: an entry takes a few KB. */
const MOST_BYTES = 64 * 1_048_576;

export function segmentName(n: number): string {
  return `audit-${String(n).padStart(6, '0')}.jsonl`;
}

/** In the order of their numbers. */
export async function listSegments(dir: string): Promise<Segment[]> {
  const names = await readdir(dir);
  return names
    .flatMap((file) => {
      const n = SEGMENT.exec(file)?.[1];
      return n === undefined ? [] : [{ n: Number(n), file, path: join(dir, file) }];
    })
    .sort((a, b) => a.n - b.n || (a.file < b.file ? -1 : 1));
}

export interface TextLine {
  text: string;
  /** Bytes up to and with this line. */
  end: number;
  /** No line break follows: a writer was killed here. */
  torn: boolean;
}

/** The lines of a file, in flat memory. */
export async function* linesOf(path: string): AsyncGenerator<TextLine> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let end = 0;
  for await (const chunk of bytesOf(path)) {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(10, from);
      if (at < 0) break;
      const parts = [...rest, chunk.subarray(from, at)];
      end += restBytes + (at - from) + 1;
      rest = [];
      restBytes = 0;
      from = at + 1;
      yield { text: Buffer.concat(parts).toString('utf8'), end, torn: false };
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > MOST_BYTES) throw tooLong(path);
  }
  if (restBytes > 0) {
    yield { text: Buffer.concat(rest).toString('utf8'), end: end + restBytes, torn: true };
  }
}

/** The first line of a file; null: it is none of an export, or half of one. */
export async function headerOf({ path }: Segment): Promise<SegmentLine | null> {
  for await (const { text, torn } of linesOf(path)) {
    const line = torn ? null : parseLine(text);
    return line?.kind === 'segment' ? line : null;
  }
  return null;
}

/** SHA-256 of the content of a file, unpacked, and its length. */
export async function digestOf(path: string): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of bytesOf(path)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { sha256: hash.digest('hex'), bytes };
}

function bytesOf(path: string): AsyncIterable<Buffer> {
  const file = createReadStream(path, { highWaterMark: 262_144 });
  if (!path.endsWith('.gz')) return file;
  const unpacked: Readable = file.pipe(createGunzip());
  // A pipe does not hand faults on.
  file.on('error', (error) => unpacked.destroy(error));
  return unpacked;
}

function tooLong(path: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_AUDIT_FOLDER',
    `${path} has a line of more than ${MOST_BYTES / 1_048_576} MiB: it is no exported log. Take it out of the folder.`,
  );
}
