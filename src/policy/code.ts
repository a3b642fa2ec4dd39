/** The identity of the code in a policy file, which a policy with custom functions refers to. Stage: policy. */
import { readFileSync } from 'node:fs';
import { textHash } from './hash.js';
import type { Policy } from './schema.js';

/** Hash of the text of a file; short, for it is shown. */
export function codeOf(file: string): string {
  return textHash(readFileSync(file, 'utf8')).slice(0, 16);
}

/** The file, of those that were loaded, in which the custom functions with this code are; null: it is not here. */
export function fileWithCode(
  loaded: Iterable<{ file: string; policy: Policy }>,
  code: string,
): string | null {
  for (const { file, policy } of loaded) {
    const signals = Object.values(policy.signals);
    if (signals.some((signal) => signal.source === 'custom' && signal.code === code)) return file;
  }
  return null;
}
