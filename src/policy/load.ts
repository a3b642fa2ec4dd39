/** Policy files and folders → checked policies, and every fault of every file at once. Stage: policy → daemon, CLI. */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import type { PolicyFault } from '../errors.js';
import { evaluateFile } from './evaluate.js';
import { policyHash, policyJson } from './hash.js';
import { parsePolicy } from './parse.js';
import type { Policy } from './schema.js';

export interface LoadedPolicy {
  /** As faults and people name it: relative to the working folder where it lies below. */
  file: string;
  policy: Policy;
  hash: string;
  /** Canonical JSON, as stored and hashed. */
  json: string;
  /** The file's text; absent: it does not come from a file. */
  text?: string;
}

export interface LoadResult {
  loaded: LoadedPolicy[];
  faults: PolicyFault[];
}

export interface LoadOptions {
  /** Time one file may take to evaluate. Default 10 s. */
  deadlineMs?: number;
}

const POLICY_FILE = /^[^.].*\.(?:ts|mts|js|mjs)$/;
const NO_POLICY_FILE = /\.(?:d|test|spec)\.m?[tj]s$/;
/** Processes at once; each takes about one core while it starts. */
const AT_ONCE = 2;

/** Never throws for what a file holds: a file that cannot be used is a fault, and the others still load. */
export async function loadPolicies(
  paths: string | readonly string[],
  options: LoadOptions = {},
): Promise<LoadResult> {
  const { deadlineMs = 10_000 } = options;
  const { files, faults } = policyFiles(typeof paths === 'string' ? [paths] : paths);
  const results: LoadResult[] = [];
  let next = 0;
  const work = async () => {
    while (next < files.length) {
      const index = next++;
      const [path, file] = files[index]!;
      results[index] = await loadFile(path, shown(file), deadlineMs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, files.length) }, work));
  const loaded = results.flatMap((result) => result.loaded);
  faults.push(...results.flatMap((result) => result.faults));
  const twice = duplicates(loaded);
  faults.push(...twice);
  const ambiguous = new Set(twice.map((fault) => fault.file));
  return { loaded: loaded.filter(({ file }) => !ambiguous.has(file)), faults };
}

async function loadFile(path: string, file: string, deadlineMs: number): Promise<LoadResult> {
  // Read first: what changes while it is evaluated is read again.
  const text = textOf(path);
  const reply = await evaluateFile(path, deadlineMs);
  if (reply.kind === 'faults') {
    return { loaded: [], faults: reply.faults.map((fault) => ({ file, ...fault })) };
  }
  const result = parsePolicy(reply.value, file);
  if (result.faults) {
    const source = readFileSync(path, 'utf8');
    return {
      loaded: [],
      faults: result.faults.map((fault) => ({ ...fault, ...lineOf(source, fault) })),
    };
  }
  const { policy } = result;
  const loaded = { file, policy, hash: policyHash(policy), json: policyJson(policy) };
  return { loaded: [{ ...loaded, ...(text !== null && { text }) }], faults: [] };
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/**
 * Where the policy files really lie, each once, and where they were found: a ConfigMap is a link to a folder that is
 * swapped. A folder gives its own files, not those of folders below.
 */
export function policyFiles(paths: readonly string[]): {
  files: [real: string, found: string][];
  faults: PolicyFault[];
} {
  const files = new Map<string, string>();
  const faults: PolicyFault[] = [];
  const take = (found: string) => {
    const real = realpathSync(found);
    if (statSync(real).isFile()) return files.set(real, found);
    // To read a pipe is to wait for somebody to write into it.
    return faults.push({ file: shown(found), field: '', message: 'is no file of text.' });
  };
  for (const path of paths) {
    try {
      const whole = realpathSync(path);
      if (!statSync(whole).isDirectory()) {
        take(resolve(path));
        continue;
      }
      const names = readdirSync(whole)
        .filter((name) => POLICY_FILE.test(name) && !NO_POLICY_FILE.test(name))
        .sort();
      for (const name of names) {
        const found = join(resolve(path), name);
        // A link to nothing takes none of the others away.
        if (existsSync(found)) take(found);
        else faults.push({ file: shown(found), field: '', message: 'is a link to nothing.' });
      }
      if (names.length === 0) {
        const message = 'holds no policy files (*.ts). Write a first one: flyball init <limiter>';
        faults.push({ file: path, field: '', message });
      }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      const message =
        code === 'ENOENT'
          ? 'does not exist. Write a first policy: flyball init <limiter>'
          : `cannot be read (${code}).`;
      faults.push({ file: path, field: '', message });
    }
  }
  return { files: [...files], faults };
}

/** Two files for one limiter: neither can be meant, so neither is used. */
function duplicates(loaded: readonly LoadedPolicy[]): PolicyFault[] {
  const byName = new Map<string, LoadedPolicy[]>();
  for (const item of loaded) {
    const { name } = item.policy.limiter;
    byName.set(name, [...(byName.get(name) ?? []), item]);
  }
  return [...byName].flatMap(([name, group]) =>
    group.length === 1
      ? []
      : group.map(({ file }) => {
          const others = group.filter((other) => other.file !== file).map((other) => other.file);
          const message = `is "${name}", and so is that of ${others.join(', ')}. One limiter has one policy: rename or remove one.`;
          return { file, field: 'limiter.name', message };
        }),
  );
}

/** The line on which a field is written, found by its keys in order; nothing when it is not plainly there. */
function lineOf(source: string, { field, message }: PolicyFault): { line?: number } {
  if (field === '') return {};
  // What is missing has no line of its own: that of the object it belongs to.
  const path = message.startsWith('is missing') ? field.split('.').slice(0, -1) : field.split('.');
  const lines = source.split('\n');
  let row = 0;
  let column = 0;
  let found: number | undefined;
  for (const part of path) {
    if (/^\d+$/.test(part)) continue;
    const key = new RegExp(`(?<![\\w$.])['"]?${part.replace(/[^\w]/g, '\\$&')}['"]?\\s*:`, 'g');
    for (; ; row++, column = 0) {
      if (row >= lines.length) return found === undefined ? {} : { line: found };
      if (/^\s*(\/\/|\*|\/\*)/.test(lines[row]!)) continue;
      key.lastIndex = column;
      const match = key.exec(lines[row]!);
      if (!match) continue;
      column = match.index + match[0].length;
      found = row + 1;
      break;
    }
  }
  return found === undefined ? {} : { line: found };
}

/** As a person names it: from where they stand. */
export function shown(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}
