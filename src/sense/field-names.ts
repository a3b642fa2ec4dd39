/** The names of telemetry fields by their bytes: the same few come each second, and texts made of them would cost more than all counts. Stage: sense. */
import { nameIn, type SecondLines } from './second-lines.js';

/** `uc:pay:E1` is kind, name and code; what is not there is empty. */
export interface FieldName {
  kind: string;
  name: string;
  code: string;
}

/** Names hold what services make up, so they may be any number: past so many they are learnt anew. */
const MOST = 16_384;

/** What `learn` says of a field, asked once for each name. */
export function createFieldNames<Meaning>(learn: (field: FieldName) => Meaning) {
  /** By a hash of the bytes; of two names with one hash the later is known. */
  const known = new Map<number, { bytes: Buffer; meaning: Meaning }>();

  return function meaningOf(lines: SecondLines, from: number, to: number): Meaning {
    let hash = 0;
    for (let at = from; at < to; at++) hash = (Math.imul(hash, 31) + lines[at]!) | 0;
    const found = known.get(hash);
    if (found !== undefined && liesAt(found.bytes, lines, from, to)) return found.meaning;
    const [kind = '', name = '', code = ''] = nameIn(lines, from, to).split(':');
    const meaning = learn({ kind, name, code });
    if (known.size >= MOST) known.clear();
    known.set(hash, { bytes: Buffer.from(lines.subarray(from, to)), meaning });
    return meaning;
  };
}

function liesAt(bytes: Buffer, lines: SecondLines, from: number, to: number): boolean {
  if (bytes.length !== to - from) return false;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== lines[from + i]) return false;
  return true;
}
