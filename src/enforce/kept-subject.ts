/** A subject as this process keeps it in its maps: what callers send may be long, and thousands are kept. Stage: enforce. */
import { encodeSubject } from '../redis/keys.js';

/** Longer ones are kept as the part of their key in Redis, which is their hash. */
const LONGEST = 256;

export function keptSubject(subject: string): string {
  return subject.length <= LONGEST ? subject : encodeSubject(subject);
}
