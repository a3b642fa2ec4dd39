/** Which tokens count now: those of a file, read again when it changes, and the local one that `run` writes by itself. Stage: api, cli. */
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import { openDataDir } from '../redis/data-dir.js';
import {
  fileMark,
  hashToken,
  newToken,
  readPlain,
  readTokens,
  type TokenRecord,
} from './tokens.js';

export interface TokenStore {
  /** Those that count at this moment. */
  records(): readonly TokenRecord[];
  /** The file that holds the local token; null: none was written. */
  readonly localFile: string | null;
}

export interface TokenPlaces {
  /** Hashes, a line each. */
  file: string;
  /** The token of whoever may read this folder; null where the file above was given. */
  local: string | null;
}

/** `FLYBALL_TOKENS_FILE`, else `tokens` of the data folder beside the local token. */
export function tokenPlaces(given: string | undefined, dataDir: string): TokenPlaces {
  if (given !== undefined) return { file: given, local: null };
  return { file: join(dataDir, 'tokens'), local: join(dataDir, 'token') };
}

/** Looked at again at most so often. */
const LOOK_EVERY_MS = 1000;

/** Throws when the file is given and not there, or cannot be understood; later faults keep what was known. */
export function createTokenStore(options: {
  places: TokenPlaces;
  clock: Pick<Clock, 'monotonicMs'>;
  log: Logger;
}): TokenStore {
  const { places, clock, log } = options;
  if (places.local === null && readTokens(places.file) === null) {
    throw new FlyballError(
      'FLYBALL_E_API_TOKENS_FILE',
      `FLYBALL_TOKENS_FILE is ${places.file}, which is not there. \`flyball token add\` writes it.`,
    );
  }
  const local = places.local === null ? null : localToken(places.local, log);
  let mark = fileMark(places.file);
  let toldMark: string | null = null;
  let known = all();
  let lookedMs = clock.monotonicMs();

  function all(): TokenRecord[] {
    return [...(readTokens(places.file) ?? []), ...(local === null ? [] : [local])];
  }

  function look(): void {
    lookedMs = clock.monotonicMs();
    const now = fileMark(places.file);
    if (now === mark) return;
    try {
      known = all();
      log.info({ event: 'tokens', tokens: known.length }, `${known.length} token(s) count.`);
      mark = now;
      toldMark = null;
    } catch (error) {
      // Tried again at each look, told once: a right that is given back need not show in the mark.
      if (now === toldMark) return;
      toldMark = now;
      log.error({ event: 'tokens_unread', err: error }, 'The tokens known before go on to count.');
    }
  }

  return {
    records() {
      if (clock.monotonicMs() - lookedMs >= LOOK_EVERY_MS) look();
      return known;
    },
    localFile: local === null ? null : places.local,
  };
}

/** Read, or written whole for the first time by whoever comes first; null where the folder lets nobody write. */
function localToken(file: string, log: Logger): TokenRecord | null {
  try {
    openDataDir(dirname(file));
    const token = readLocal(file) ?? writeLocal(file);
    return { name: 'local', role: 'admin', sha256: hashToken(token) };
  } catch (error) {
    // None can be there, or it gives no answer: whatever asked for it next would wait for ever.
    if (error instanceof FlyballError) throw error;
    log.warn(
      { event: 'token_unwritten', err: error },
      `${file} could not be written, so nobody may change anything over HTTP. Set FLYBALL_TOKENS_FILE.`,
    );
    return null;
  }
}

function readLocal(file: string): string | null {
  try {
    return readPlain(file).trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function writeLocal(file: string): string {
  const token = newToken();
  const whole = `${file}.${process.pid}`;
  writeNew(whole, `${token}\n`);
  try {
    linkSync(whole, file);
    return token;
  } catch (error) {
    // Another daemon of this folder came first: theirs counts.
    const theirs = (error as NodeJS.ErrnoException).code === 'EEXIST' ? readLocal(file) : null;
    if (theirs === null) throw error;
    return theirs;
  } finally {
    rmSync(whole, { force: true });
  }
}

/** For its owner's eyes alone, from the first byte on. */
export function writeNew(file: string, text: string): void {
  rmSync(file, { force: true });
  const fd = openSync(file, 'wx', 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
