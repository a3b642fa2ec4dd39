/** The policy files of this daemon, watched by content; a broken one is told and changes nothing. Stage: daemon. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatFault, type PolicyFault } from '../errors.js';
import type { Logger } from '../log.js';
import { type LoadedPolicy, loadPolicies } from '../policy/load.js';
import type { Metrics } from '../report/metrics.js';

export interface PolicyFiles {
  /**
   * By limiter, as last loaded without fault: a file that broke later keeps its last good version here, one that
   * is gone does not.
   */
  readonly files: ReadonlyMap<string, LoadedPolicy>;
  /** Faults of the last reading. */
  readonly faults: readonly PolicyFault[];
  /** Reads all files; the ones that differ from what was loaded before are returned. */
  load(): Promise<LoadedPolicy[]>;
  /** Reads again only if some content has changed, or now and then while there are faults. */
  poll(): Promise<LoadedPolicy[]>;
}

/** A fault may lie in the machine, not the file: it was too busy, or an import was not there yet. */
const POLLS_UNTIL_RETRY = 15;

const READ = /\.(?:ts|mts|js|mjs|json)$/;

export function createPolicyFiles(options: {
  paths: readonly string[];
  deadlineMs: number;
  log: Logger;
  metrics: Metrics;
}): PolicyFiles {
  const { paths, deadlineMs, log, metrics } = options;
  const files = new Map<string, LoadedPolicy>();
  let faults: readonly PolicyFault[] = [];
  let digest = '';
  let pollsSinceLoad = 0;

  async function load(): Promise<LoadedPolicy[]> {
    // Taken first: what changes while files are evaluated is seen by the next poll.
    const read = contentDigest(paths);
    const result = await loadPolicies(paths, { deadlineMs });
    digest = read;
    pollsSinceLoad = 0;
    faults = result.faults;
    metrics.policyLoadSuccess.set(faults.length === 0 ? 1 : 0);
    metrics.policyFaults.set(faults.length);
    const changed: LoadedPolicy[] = [];
    for (const loaded of result.loaded) {
      const { name } = loaded.policy.limiter;
      if (files.get(name)?.hash !== loaded.hash) changed.push(loaded);
      files.set(name, loaded);
    }
    for (const [name, { file }] of files) {
      if (existsSync(file)) continue;
      files.delete(name);
      log.warn(
        { event: 'policy_file_gone', limiter: name, file },
        `${file} is gone; the adopted policy of ${name} stays in force.`,
      );
    }
    return changed;
  }

  return {
    files,
    get faults() {
      return faults;
    },
    load,
    async poll() {
      pollsSinceLoad++;
      const again = faults.length > 0 && pollsSinceLoad >= POLLS_UNTIL_RETRY;
      if (contentDigest(paths) === digest && !again) return [];
      const told = new Set(faults.map(formatFault));
      const changed = await load();
      for (const fault of faults) {
        if (again && told.has(formatFault(fault))) continue;
        log.error(
          { event: 'policy_fault', file: fault.file, field: fault.field },
          `${formatFault(fault)} The adopted policy stays in force.`,
        );
      }
      if (faults.length === 0) log.info({ event: 'policies_read', changed: changed.length });
      return changed;
    },
  };
}

/** Those of the limiter's own file; where it has none, those of files that no limiter is known to come from: one may be its own. */
export function faultsOf(
  limiter: string,
  { files, faults }: Pick<PolicyFiles, 'files' | 'faults'>,
): PolicyFault[] {
  const own = files.get(limiter)?.file;
  if (own !== undefined) return faults.filter(({ file }) => file === own);
  const known = new Set([...files.values()].map(({ file }) => file));
  return faults.filter(({ file }) => !known.has(file));
}

/** One hash over names and bytes; helper files beside the policies count too. What cannot be read counts as such. */
function contentDigest(paths: readonly string[]): string {
  const hash = createHash('sha256');
  const add = (file: string) => {
    let content: Buffer | string;
    try {
      // A pipe would hold up the loop until somebody writes into it.
      content = statSync(file).isFile() ? readFileSync(file) : 'no file';
    } catch (error) {
      content = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    }
    hash.update(`${file}\0`).update(createHash('sha256').update(content).digest());
  };
  for (const path of paths) {
    let names: string[] = [];
    try {
      if (statSync(path).isDirectory()) {
        names = readdirSync(path)
          .filter((name) => READ.test(name))
          .sort();
      }
    } catch {
      // A folder that is gone is a content of its own: `add` records why it cannot be read.
    }
    if (names.length === 0) add(path);
    for (const name of names) add(join(path, name));
  }
  return hash.digest('hex');
}
