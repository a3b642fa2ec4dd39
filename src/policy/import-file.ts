/** Imports a policy file into this process, which should be one of its own: the file may do anything. Stage: policy. */
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';

/** `flyball` in a policy is the running package, wherever the file lies and whatever is installed beside it. */
const author = fileURLToPath(
  new URL(`./author${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
);

export function importPolicyFile(file: string): Promise<Record<string, unknown>> {
  const jiti = createJiti(file, {
    alias: { flyball: author },
    // Nothing is written beside the file or in the temporary folder, and nothing stale is read.
    fsCache: false,
    moduleCache: false,
    interopDefault: false,
  });
  return jiti.import<Record<string, unknown>>(file);
}
