/** The repository's own files as data, for the tests of the house's rules: texts, imports, exported names. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface SourceFile {
  /** From the root, with forward slashes. */
  path: string;
  text: string;
}

export interface Import {
  from: string;
  /** A path from the root for own files, else the package's name. */
  to: string;
  own: boolean;
  typeOnly: boolean;
  names: string[];
}

export function filesUnder(folder: string, ending: RegExp): SourceFile[] {
  const path = join(ROOT, folder);
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [{ path: folder, text: readFileSync(path, 'utf8') }];
  return readdirSync(path)
    .filter((name) => name !== 'node_modules')
    .flatMap((name) => filesUnder(join(folder, name), ending))
    .filter((file) => ending.test(file.path));
}

export const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** All but generated ones. */
export const sources = filesUnder('src', /\.tsx?$/).filter((file) => !file.path.includes('.gen.'));
export const lua = filesUnder('lua', /\.lua$/);

const STATEMENT =
  /^(?:import|export)\s+(type\s+)?((?:[\w*]|\{[^}]*\}|,|\s)+?)\s+from\s+'([^']+)'/gm;
const DYNAMIC = /\bimport\(\s*'([^']+)'/g;

export function importsOf({ path, text }: SourceFile): Import[] {
  const found = [...text.matchAll(STATEMENT)].map(([, type, clause, to]) => {
    const names = (clause ?? '')
      .replace(/[{}]/g, '')
      .split(',')
      .map((name) => name.trim());
    const given = names.filter(Boolean);
    const typeOnly = type !== undefined || given.every((name) => name.startsWith('type '));
    return {
      typeOnly,
      names: given.map((name) => name.replace(/^type /, '').split(' ')[0]!),
      to: to!,
    };
  });
  const dynamic = [...text.matchAll(DYNAMIC)].map(([, to]) => ({
    typeOnly: false,
    names: [],
    to: to!,
  }));
  return [...found, ...dynamic].map(({ to, ...rest }) => {
    const own = to.startsWith('.');
    const target = relative(ROOT, join(ROOT, dirname(path), to)).replace(/\.js(x?)$/, '.ts$1');
    return { from: path, to: own ? target : to, own, ...rest };
  });
}

export const imports = sources.flatMap(importsOf);

/** `src/decide/step.ts` → `decide`; a file directly in src is its own room: `errors`. */
export const roomOf = (path: string) => path.split('/')[1]!.replace(/\.ts$/, '');

export function exportedNames(text: string): string[] {
  const declared = text.matchAll(
    /^export (?:declare )?(?:async )?(?:function|const|class|interface|type) (\w+)/gm,
  );
  return [...declared].map(([, name]) => name!);
}

/** Lines where a pattern stands, as `path:line: text`. */
export function linesWith(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  );
}
