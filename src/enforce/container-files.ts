/** What the cgroup of the process may use and has used, from the files of version 2 or 1. Stage: enforce. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Null wherever the cgroup sets no limit, or has no such file. */
export interface ContainerFiles {
  /** Cores' worth of CPU time it may use. */
  cores(): number | null;
  /** CPU time used so far, ms; only where `cores` limits it. */
  cpuMs(): number | null;
  memoryLimit(): number | null;
  /** Memory in use, without the file cache that gives way. */
  memoryUsed(): number | null;
}

const NONE: ContainerFiles = {
  cores: () => null,
  cpuMs: () => null,
  memoryLimit: () => null,
  memoryUsed: () => null,
};

/** Version 1 writes "no limit" as a number near 2^63. */
const NO_LIMIT = 2 ** 60;

export function containerFiles(
  root = '/sys/fs/cgroup',
  self = '/proc/self/cgroup',
): ContainerFiles {
  const groups = text(self);
  if (groups === null) return NONE;
  return existsSync(join(root, 'cgroup.controllers'))
    ? version2(root, groups)
    : version1(root, groups);
}

function version2(root: string, groups: string): ContainerFiles {
  const own = folderOf(root, /^0::(.*)$/m.exec(groups)?.[1] ?? '/');
  const cpu = tightest(root, own, (folder) => {
    const [quota, period] = (text(join(folder, 'cpu.max')) ?? '').split(' ').map(Number);
    return quota! > 0 && period! > 0 ? quota! / period! : null;
  });
  const memory = tightest(root, own, (folder) => positive(text(join(folder, 'memory.max'))));
  return {
    cores: () => cpu?.limit ?? null,
    cpuMs() {
      if (cpu === null) return null;
      const us = field(text(join(cpu.folder, 'cpu.stat')), 'usage_usec');
      return us === null ? null : us / 1000;
    },
    memoryLimit: () => memory?.limit ?? null,
    memoryUsed() {
      if (memory === null) return null;
      const used = positive(text(join(memory.folder, 'memory.current')));
      const cache = field(text(join(memory.folder, 'memory.stat')), 'inactive_file') ?? 0;
      return used === null ? null : Math.max(0, used - cache);
    },
  };
}

function version1(root: string, groups: string): ContainerFiles {
  const place = (controller: string) => {
    const path = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, 'm').exec(
      groups,
    )?.[1];
    return path === undefined ? null : folderOf(join(root, controller), path);
  };
  const cpu = place('cpu');
  const account = place('cpuacct');
  const memory = place('memory');
  const quota = cpu && positive(text(join(cpu, 'cpu.cfs_quota_us')));
  const period = cpu && positive(text(join(cpu, 'cpu.cfs_period_us')));
  const cores = quota && period ? quota / period : null;
  const bytes = memory && positive(text(join(memory, 'memory.limit_in_bytes')));
  const limit = bytes && bytes < NO_LIMIT ? bytes : null;
  return {
    cores: () => cores,
    cpuMs() {
      const ns = cores && account ? positive(text(join(account, 'cpuacct.usage'))) : null;
      return ns === null ? null : ns / 1e6;
    },
    memoryLimit: () => limit,
    memoryUsed() {
      const used = memory && limit ? positive(text(join(memory, 'memory.usage_in_bytes'))) : null;
      if (!used) return null;
      const cache = field(text(join(memory!, 'memory.stat')), 'total_inactive_file') ?? 0;
      return Math.max(0, used - cache);
    },
  };
}

/** Inside a container its own group is the root of what it sees, whatever the path says. */
function folderOf(root: string, path: string): string {
  const folder = join(root, path.trim());
  return folder.startsWith(root) && existsSync(folder) ? folder : root;
}

/** The tightest limit on the way from the group up: any of them may be what binds. */
function tightest(
  root: string,
  from: string,
  read: (folder: string) => number | null,
): { folder: string; limit: number } | null {
  let found: { folder: string; limit: number } | null = null;
  for (let folder = from; folder.startsWith(root); folder = dirname(folder)) {
    const limit = read(folder);
    if (limit !== null && (found === null || limit < found.limit)) found = { folder, limit };
    if (folder === root) break;
  }
  return found;
}

function positive(written: string | null): number | null {
  const value = Number(written?.trim() || Number.NaN);
  return Number.isFinite(value) && value > 0 ? value : null;
}

function field(written: string | null, name: string): number | null {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(written ?? '')?.[1];
  return found === undefined ? null : Number(found);
}

function text(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
