/** Which built file is meant by a module: what runs as a process of its own runs as it ships. Stage: policy. */
import { fileURLToPath } from 'node:url';

/**
 * Path of a built file beside the module with that URL. Tests run sources, and build them first: a process that had
 * to translate all that it imports would take twice as long to start.
 */
export function builtFile(module: string, name: string): string {
  const beside = fileURLToPath(new URL(name, module));
  return module.endsWith('.ts') ? beside.replace(/\/src\/(?!.*\/src\/)/, '/dist/') : beside;
}
