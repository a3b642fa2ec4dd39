/** `flyball check --types`: what TypeScript itself says of policy files, by the compiler that is installed beside them. Stage: cli. */
import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { PolicyFault } from '../errors.js';
import { builtFile } from '../policy/built-file.js';
import { shown } from '../policy/load.js';
import { UsageError } from './output.js';

/** A compiler that hangs is ended. */
const DEADLINE_MS = 120_000;

/** Types that `import … from 'flyball'` has, wherever the files lie: those of the running package. */
const TYPES = builtFile(import.meta.url, '../index.d.ts');

/** Faults of these files, in the order of the compiler. */
export async function checkTypes(files: readonly string[]): Promise<PolicyFault[]> {
  const sources = files.filter((file) => /\.m?ts$/.test(file));
  if (sources.length === 0) return [];
  const compiler = findCompiler([
    ...new Set([...sources.map((file) => dirname(file)), process.cwd()]),
  ]);
  // A folder of its own: a tsconfig beside the policies may want anything.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'flyball-types-')));
  try {
    const project = join(folder, 'tsconfig.json');
    writeFileSync(project, JSON.stringify({ compilerOptions: OPTIONS, files: sources }));
    const output = await compile(compiler, ['--project', project, '--pretty', 'false'], folder);
    return faultsOf(output, folder, sources);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const OPTIONS = {
  ...{ noEmit: true, strict: true, skipLibCheck: true, allowImportingTsExtensions: true },
  ...{ target: 'es2022', module: 'esnext', moduleResolution: 'bundler', types: [] },
  paths: { flyball: [TYPES] },
};

function findCompiler(folders: readonly string[]): string {
  for (const folder of folders) {
    try {
      const { resolve: find } = createRequire(join(folder, 'policy.ts'));
      const pack = find('typescript/package.json');
      const { bin } = createRequire(pack)(pack) as { bin: { tsc: string } };
      return join(dirname(pack), bin.tsc);
    } catch {
      // Not beside these files; the next folder may have it.
    }
  }
  throw new UsageError(
    '--types needs TypeScript, and none is installed beside the policies or here.',
    'npm install --save-dev typescript. Without --types the values are checked all the same.',
  );
}

function compile(compiler: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((ok, no) => {
    const child = spawn(process.execPath, [compiler, ...args], {
      ...{ cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: DEADLINE_MS, killSignal: 'SIGKILL' },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    }
    child.once('error', no);
    child.once('close', (code) => {
      const spoke = code === 0 || /error TS\d+/.test(text);
      if (spoke) ok(text);
      else no(new Error(`the TypeScript compiler ended with ${code}: ${text.slice(0, 300)}`));
    });
  });
}

/** `policy.ts(3,5): error TS2322: …`; what lies in other files is none of ours. */
function faultsOf(output: string, folder: string, sources: readonly string[]): PolicyFault[] {
  const ours = new Map(sources.map((file) => [realpathSync(file), file]));
  return output.split('\n').flatMap((text) => {
    const match = /^(.+?)\((\d+),(\d+)\): error (TS\d+): (.+)$/.exec(text.trimEnd());
    if (match === null) return [];
    const [, path = '', line, column, code, what = ''] = match;
    const file = ours.get(resolve(folder, path));
    if (file === undefined) return [];
    const message = `does not type-check (${code}, column ${column}): ${what}`;
    return [{ file: shown(file), field: '', line: Number(line), message }];
  });
}
