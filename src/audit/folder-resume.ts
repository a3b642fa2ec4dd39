/** Where an exported log was left, after a restart or a kill: what a half line leaves is cut off, positions are read again. Stage: audit. */
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Position, parseLine, positionOf, type SegmentLine } from './export-line.js';
import { headerOf, linesOf, listSegments, type Segment } from './segments.js';

export interface Left {
  /** The newest file; null: there is none. */
  segment: Segment | null;
  /** Its content up to the last whole line. */
  bytes: number;
  atMs: number;
  /** It may be written on: otherwise a new file begins after it. */
  whole: boolean;
  positions: Map<string, Position>;
  /** Of which entries the newest heads in these files are. */
  headed: Map<string, Position>;
  /** Bytes of a half line that were cut off. */
  cut: number;
}

interface Scan {
  header: SegmentLine | null;
  /** After the last line that is one of ours, with all before it. */
  goodBytes: number;
  size: number;
  /** A line that is none of ours has others after it: that is no kill, so nothing is touched. */
  damaged: boolean;
}

/** Reads the newest file whose first line is whole, and those after it; cuts a half line off the newest. */
export async function resumeFolder(dir: string): Promise<Left> {
  for (const file of await readdir(dir)) {
    // A file that was never finished: none of it counts.
    if (file.startsWith('audit-') && file.endsWith('.tmp')) await rm(join(dir, file));
  }
  const segments = await listSegments(dir);
  const positions = new Map<string, Position>();
  const headed = new Map<string, Position>();
  const newest = segments.at(-1) ?? null;
  const nothing = { segment: null, bytes: 0, atMs: 0, whole: false, positions, headed, cut: 0 };
  if (newest === null) return nothing;
  let from = segments.length - 1;
  while (from > 0 && (await headerOf(segments[from]!)) === null) from--;
  let scan: Scan | null = null;
  for (const segment of segments.slice(from)) {
    scan = await readSegment(segment, positions, headed);
  }
  const { header, goodBytes, size, damaged } = scan!;
  const whole = header !== null && !damaged && !newest.file.endsWith('.gz');
  const cut = whole ? size - goodBytes : 0;
  if (cut > 0) await cutOff(newest.path, goodBytes);
  const bytes = whole ? goodBytes : size;
  const atMs = header?.atMs ?? 0;
  return { segment: newest, bytes, atMs, whole, positions, headed, cut };
}

/** Files that are looked through for what Redis has lost: a failover loses seconds. */
const LOOK_THROUGH = 3;

/** Which of these hashes of a limiter the newest files hold. */
export async function hashesIn(
  dir: string,
  limiter: string,
  hashes: readonly string[],
): Promise<Set<string>> {
  const wanted = new Set(hashes);
  const found = new Set<string>();
  for (const { path } of (await listSegments(dir)).slice(-LOOK_THROUGH)) {
    for await (const { text } of linesOf(path)) {
      const line = parseLine(text);
      if (line?.kind !== 'entry' || line.limiter !== limiter) continue;
      const { hash } = positionOf(line);
      if (wanted.has(hash)) found.add(hash);
    }
  }
  return found;
}

async function readSegment(
  { path }: Segment,
  positions: Map<string, Position>,
  headed: Map<string, Position>,
): Promise<Scan> {
  const scan: Scan = { header: null, goodBytes: 0, size: 0, damaged: false };
  let bad = false;
  for await (const { text, end, torn } of linesOf(path)) {
    scan.size = end;
    const line = torn ? null : parseLine(text);
    if (line === null) {
      bad = true;
      continue;
    }
    if (bad) scan.damaged = true;
    scan.goodBytes = end;
    if (line.kind === 'segment') {
      scan.header ??= line;
      for (const [limiter, position] of Object.entries(line.heads))
        positions.set(limiter, position);
    } else if (line.kind === 'entry') positions.set(line.limiter, positionOf(line));
    else if (line.kind === 'head') {
      const { limiter, id, hash, epoch, revision } = line;
      // One of a sleeper comes late, and is of an entry before the newest: it covers nothing.
      if (positions.get(limiter)?.hash === hash) headed.set(limiter, { id, hash, epoch, revision });
    }
  }
  return scan;
}

async function cutOff(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.truncate(bytes);
    await file.datasync();
  } finally {
    await file.close();
  }
}
