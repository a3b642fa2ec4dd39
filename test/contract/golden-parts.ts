/** The raw calls of take.json and calls.json: of each part the limiter’s params, and what is answered in turn. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface GoldenPart {
  /** null: the limiter has none. `hot` is in base64. */
  params: Record<string, string> | null;
  steps: { what: string; script: string; keys: string[]; args: string[]; reply: unknown }[];
}

export function goldenParts(): GoldenPart[] {
  return ['take.json', 'calls.json'].flatMap(
    (file) => JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8')) as GoldenPart[],
  );
}
