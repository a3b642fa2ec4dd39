/** Tokens as a file keeps them: a name, a role and a hash a line; never the token itself. Stage: api, cli. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { FlyballError } from '../errors.js';
import { ROLES } from './roles.js';
import type { Role } from './types.js';

export interface TokenRecord {
  /** Stands in the audit log as who did it. */
  name: string;
  role: Role;
  /** SHA-256 of the token: of 256 random bits, so that no slow hash is needed. */
  sha256: Buffer;
}

export const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
/** Tells scanners of secrets what they have found. */
const PREFIX = 'flyball_';
/** More than any token of ours: what is longer is not even hashed. */
const MOST_CHARACTERS = 256;
/** Of a file: ten thousand tokens, about. */
const MOST_BYTES = 1_048_576;

/** A new one, to be shown once. */
export function newToken(): string {
  return PREFIX + randomBytes(32).toString('base64url');
}

export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** Compares with every record, so that the time tells nothing of which or whether. */
export function findToken(records: readonly TokenRecord[], token: string): TokenRecord | null {
  if (token.length === 0 || token.length > MOST_CHARACTERS) return null;
  const hash = hashToken(token);
  let found: TokenRecord | null = null;
  for (const record of records) if (timingSafeEqual(record.sha256, hash)) found = record;
  return found;
}

/** `name:role:sha256` a line; `#` begins a comment. All faults at once; none repeats what stands there. */
export function parseTokens(text: string, file: string): TokenRecord[] {
  const records: TokenRecord[] = [];
  const faults: string[] = [];
  for (const [i, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const fault = (why: string) => faults.push(`${file}:${i + 1}: ${why}`);
    const [name = '', role = '', hash = '', ...more] = line.split(':');
    if (more.length > 0 || hash === '') fault('is not name:role:sha256');
    else if (!TOKEN_NAME.test(name)) fault("the name may hold letters, digits, '.', '_', '@', '-'");
    else if (!isRole(role)) fault(`the role is none of ${ROLES.join(', ')}`);
    else if (!/^[0-9a-f]{64}$/i.test(hash)) fault('the hash is no SHA-256 in hex (64 digits)');
    else if (name === 'local') fault("the name local is the machine's own");
    else if (records.some((one) => one.name === name)) fault('the name stands there twice');
    else if (records.some((one) => one.sha256.toString('hex') === hash.toLowerCase()))
      fault('the hash stands there twice: whose token would it be?');
    else records.push({ name, role, sha256: Buffer.from(hash, 'hex') });
  }
  if (faults.length > 0) {
    const mend = '`flyball token add` writes such lines.';
    throw new FlyballError('FLYBALL_E_API_TOKENS_FILE', `${faults.join('\n')}\n${mend}`);
  }
  return records;
}

export function tokenLine({ name, role, sha256 }: TokenRecord): string {
  return `${name}:${role}:${sha256.toString('hex')}`;
}

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

/** The records of a file; null: it is not there. */
export function readTokens(file: string): TokenRecord[] | null {
  let text: string;
  try {
    text = readPlain(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new FlyballError(
      'FLYBALL_E_API_TOKENS_FILE',
      `${file} cannot be read: ${(error as Error).message}. Let the daemon's user read it.`,
      { cause: error },
    );
  }
  return parseTokens(text, file);
}

/** Of a device or a pipe there is no end, and who waits for one serves nobody meanwhile. */
export function readPlain(file: string): string {
  const found = statSync(file);
  if (found.isDirectory()) throw new Error('it is a folder');
  if (!found.isFile()) throw new Error('it is no plain file');
  if (found.size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`);
  return readFileSync(file, 'utf8');
}

/** Changes when the file does. */
export function fileMark(file: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(file);
    return `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
  } catch {
    return '';
  }
}
