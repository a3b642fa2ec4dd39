/** How to start a module of ours as a process: built it is plain, from sources (tests, development) jiti runs it. Stage: policy. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Module and arguments for `fork`. `beside`: URL of a module in the same folder, by which the kind is known. */
export function childCommand(
  beside: string,
  name: string,
  args: readonly string[],
): [string, string[]] {
  const self = fileURLToPath(beside);
  const child = join(dirname(self), `${name}${self.endsWith('.ts') ? '.ts' : '.js'}`);
  if (!child.endsWith('.ts')) return [child, [...args]];
  const cli = join(dirname(createRequire(import.meta.url).resolve('jiti')), 'jiti-cli.mjs');
  return [cli, [child, ...args]];
}
