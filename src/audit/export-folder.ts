/** A folder of exported lines: appended and synced, a new file by size and by day, each naming the one before. Stage: audit. */
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FlyballError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import type { HeadLine, Position, SegmentLine } from './export-line.js';
import { resumeFolder } from './folder-resume.js';
import { digestOf, HEADS_FILE, segmentName } from './segments.js';
import type { Signer } from './signature.js';

export interface FolderOptions {
  dir: string;
  prefix: string;
  /** A file that has grown past this is followed by a new one. */
  maxBytes: number;
  signer: Signer | null;
  nowMs: () => number;
}

export interface ExportFolder {
  readonly positions: ReadonlyMap<string, Position>;
  /** When it was opened: of which entries its newest heads are. */
  readonly headed: ReadonlyMap<string, Position>;
  /** What a killed writer had left of its last line, and was cut off. */
  readonly cut: { file: string; bytes: number } | null;
  /** All of the lines are on the disk when it resolves. When it rejects, some may be: open the folder anew. */
  append(lines: readonly string[], moved: ReadonlyMap<string, Position>): Promise<void>;
  /** The newest head of each log in one small file, to be copied to where nobody here can write. */
  writeHeads(heads: readonly HeadLine[]): Promise<void>;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;

/** Opens it where it was left. Only one process may have it open for writing. */
export async function openExportFolder(options: FolderOptions): Promise<ExportFolder> {
  const { dir, prefix, maxBytes, signer, nowMs } = options;
  const left = await resumeFolder(dir);
  const { positions, segment } = left;
  let n = segment?.n ?? 0;
  let path = segment?.path ?? '';
  let file: FileHandle | null = null;
  let { bytes, atMs } = left;
  if (left.whole) {
    file = await open(path, 'a');
    // What is there counts as exported from now on.
    await file.datasync().catch(async (error) => {
      await file?.close();
      throw error;
    });
  }

  async function begin(): Promise<FileHandle> {
    const at = nowMs();
    const header: SegmentLine = {
      ...{ v: 1, kind: 'segment', n: n + 1, prefix, atMs: at },
      prev: n === 0 ? null : { file: segmentName(n), ...(await digestOf(path)) },
      heads: Object.fromEntries(positions),
    };
    const text = `${JSON.stringify(signer?.sign(header) ?? header)}\n`;
    const next = join(dir, segmentName(n + 1));
    await writeWhole(next, text);
    await file?.close();
    // Closed already, whatever becomes of the rest.
    file = null;
    file = await open(next, 'a');
    n += 1;
    path = next;
    atMs = at;
    bytes = Buffer.byteLength(text);
    return file;
  }

  function due(): boolean {
    return file === null || bytes >= maxBytes || dayOf(nowMs()) !== dayOf(atMs);
  }

  return {
    positions,
    headed: left.headed,
    cut: left.cut > 0 ? { file: segmentName(n), bytes: left.cut } : null,
    async append(lines, moved) {
      const target = due() || file === null ? await begin() : file;
      await assertOurs(target, bytes, path);
      const data = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
      for (let at = 0; at < data.length; ) {
        at += (await target.write(data, at, data.length - at)).bytesWritten;
      }
      await target.datasync();
      bytes += data.length;
      for (const [limiter, position] of moved) positions.set(limiter, position);
    },
    async writeHeads(heads) {
      const text = heads.map((head) => `${JSON.stringify(head)}\n`).join('');
      await writeWhole(join(dir, HEADS_FILE), text);
    },
    async close() {
      await file?.close();
      file = null;
    },
  };
}

/** Makes the folder if need be, gives it a name of its own, and fails if nothing can be written there. */
export async function prepareFolder(dir: string): Promise<{ id: string }> {
  try {
    makeFolder(dir);
    const path = join(dir, 'folder.json');
    const id = crypto.randomUUID();
    // Whoever is first names it.
    await writeFile(path, JSON.stringify({ v: 1, id }), { flag: 'wx' }).catch(async (error) => {
      if (error.code === 'EEXIST') return;
      await rm(path, { force: true });
      throw error;
    });
    const probe = join(dir, `probe.${process.pid}.tmp`);
    await writeFile(probe, 'x');
    await rm(probe);
    const named = JSON.parse(await readFile(path, 'utf8')) as { id?: unknown };
    if (typeof named.id !== 'string' || !/^[\w-]{1,64}$/.test(named.id)) {
      throw new Error(`${path} holds no id; remove it`);
    }
    return { id: named.id };
  } catch (error) {
    throw new FlyballError(
      'FLYBALL_E_AUDIT_FOLDER',
      `the audit log cannot be exported to ${dir}: ${(error as Error).message}. Give FLYBALL_AUDIT_FILE a folder that this user may write, with room on its disk.`,
      { cause: error },
    );
  }
}

/** A file that others have written to, or taken away, is looked at anew before anything is added. */
async function assertOurs(file: FileHandle, bytes: number, path: string): Promise<void> {
  const { size, ino, dev } = await file.stat();
  const named = await stat(path).catch(() => null);
  if (named?.ino !== ino || named.dev !== dev) {
    throw new Error(`${path} has been removed, or another file stands in its place`);
  }
  if (size !== bytes) throw new Error(`${path} has been changed by another process`);
}

/** All of it under this name, or nothing. */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.tmp`;
  try {
    const file = await open(draft, 'w');
    try {
      await file.writeFile(text);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    const folder = await open(join(path, '..'), 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}

function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}
