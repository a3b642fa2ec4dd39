/** The identity of the code in a policy file, which a policy with custom functions refers to. Stage: policy. */
import { readFileSync } from 'node:fs';
import { textHash } from './hash.js';

/** Hash of the text of a file; short, for it is shown. */
export function codeOf(file: string): string {
  return textHash(readFileSync(file, 'utf8')).slice(0, 16);
}
