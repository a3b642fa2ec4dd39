/** Exports to a folder: held by a lease in Redis (any machine) and a lock in the folder (this one), so that one writes. Stage: audit → daemon. */
import { type FolderHold, holdFolder } from '../redis/folder-lock.js';
import { fleetKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { type ExportFolder, type FolderOptions, openExportFolder } from './export-folder.js';
import { entryText, type HeadLine, type Position, positionOf } from './export-line.js';
import { hashesIn } from './folder-resume.js';
import type { Sink } from './sink.js';

export function createFileSink(
  options: FolderOptions & {
    /** The folder's own. */
    id: string;
    redis: RedisClient;
    owner: string;
    /** Who is silent for longer does not write there any more. */
    leaseMs: number;
    onCut: (file: string, bytes: number) => void;
  },
): Sink {
  const { id, redis, owner, leaseMs, dir, prefix, signer, onCut } = options;
  const key = fleetKeys(prefix).exporter(id);
  const heads = new Map<string, HeadLine>();
  let hold: FolderHold | null = null;
  let folder: ExportFolder | null = null;

  async function leased(): Promise<boolean> {
    if ((await redis.set(key, owner, 'PX', leaseMs, 'NX')) === 'OK') return true;
    if ((await redis.get(key)) !== owner) return false;
    return (await redis.pexpire(key, leaseMs)) === 1;
  }

  async function reopen(): Promise<void> {
    await folder?.close().catch(() => {});
    folder = null;
    // Another folder may stand in its place by now, which has a lock of its own.
    hold?.release();
    hold = null;
  }

  async function acquire(): Promise<boolean> {
    if (!(await leased())) {
      await reopen();
      return false;
    }
    hold ??= holdFolder(dir);
    if (hold === null) return false;
    if (folder === null) {
      folder = await openExportFolder(options);
      if (folder.cut !== null) onCut(folder.cut.file, folder.cut.bytes);
    }
    return true;
  }

  async function opened(): Promise<ExportFolder> {
    // Asked before each write: this process may have slept, and another taken its place.
    if (!(await acquire()) || folder === null) throw new Error(`another exporter writes to ${dir}`);
    return folder;
  }

  return {
    kind: 'file',
    name: `file:${id}`,
    to: dir,
    signedBy: signer?.key ?? null,
    acquire,
    position: (limiter) => folder?.positions.get(limiter) ?? null,
    headed: (limiter) => folder?.headed.get(limiter) ?? null,
    holds: (limiter, hashes) => hashesIn(dir, limiter, hashes),
    async append(items) {
      const moved = new Map<string, Position>();
      const lines = items.map((item) => {
        if (item.kind === 'gap') return JSON.stringify(signer?.sign(item.gap) ?? item.gap);
        moved.set(item.limiter, positionOf(item));
        return entryText(item.limiter, item.id, item.fields);
      });
      await (await opened()).append(lines, moved);
    },
    async appendHeads(moved) {
      const signed = moved.map((head) => signer?.sign(head) ?? head);
      const to = await opened();
      await to.append(
        signed.map((head) => JSON.stringify(head)),
        new Map(),
      );
      for (const head of signed) heads.set(head.limiter, head);
      await to.writeHeads([...heads.values()]);
    },
    reopen,
    async release() {
      await reopen();
      // Not atomic: at worst a third one begins beside the second, whose lines repeat and say the same.
      const mine = await redis.get(key).catch(() => null);
      if (mine === owner) await redis.del(key).catch(() => {});
    },
  };
}
