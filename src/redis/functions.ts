/** The hot scripts as one Redis Functions library, for services in other languages: `FCALL flyball_take …`. Stage: enforce. */
import { VERSION } from '../version.js';
import { masters } from './read-hashes.js';
import type { RedisClient } from './run-script.js';
import {
  counterScript,
  drawScript,
  effectiveScript,
  inflightScript,
  logScript,
  outcomeScript,
  paceScript,
  refundScript,
  slotsScript,
  subjectsScript,
  takeScript,
  togetherScript,
  topScript,
  windowScript,
} from './scripts.gen.js';

/** Nothing that changes what is in force: a service has no need of it. */
const HOT = [
  takeScript,
  subjectsScript,
  togetherScript,
  logScript,
  counterScript,
  windowScript,
  paceScript,
  refundScript,
  drawScript,
  inflightScript,
  slotsScript,
  topScript,
  outcomeScript,
  effectiveScript,
];
const READ_ONLY: readonly string[] = [effectiveScript.name];

const FAMILY = 'flyball_';
/** One name a version: `FUNCTION LIST` shows which one a server has. */
export const LIBRARY_NAME = FAMILY + VERSION.replace(/[^A-Za-z0-9]/g, '_');

/** Names of the functions, as `FCALL` takes them. */
export const FUNCTION_NAMES: readonly string[] = HOT.map(({ name }) => FAMILY + name);

/** The source, as `FUNCTION LOAD` takes it: each script's own text in a function of its keys and arguments. */
export function functionsLibrary(): string {
  const functions = HOT.map(({ name, lua }) => {
    const flags = READ_ONLY.includes(name) ? `\n  flags = { 'no-writes' },` : '';
    const body = lua.trimEnd().split('\n').join('\n    ');
    return `redis.register_function({
  function_name = '${FAMILY}${name}',${flags}
  callback = function(KEYS, ARGV)
    ${body}
  end,
})`;
  });
  return `#!lua name=${LIBRARY_NAME}\n${functions.join('\n\n')}\n`;
}

/**
 * Puts this version's library in the place of any other of ours, on every master, each in one transaction: callers
 * meet the old functions or the new ones, never none.
 * @returns the names of the libraries that were replaced
 */
export async function loadFunctions(redis: RedisClient): Promise<string[]> {
  const replaced = new Set<string>();
  for (const master of masters(redis)) {
    for (const name of await loadInto(master)) replaced.add(name);
  }
  return [...replaced];
}

async function loadInto(redis: ReturnType<typeof masters>[number]): Promise<string[]> {
  const listed = (await redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', `${FAMILY}*`)) as unknown[][];
  const others = listed
    .map((library) => String(library[library.indexOf('library_name') + 1]))
    .filter((name) => name !== LIBRARY_NAME);
  const transaction = redis.multi();
  for (const name of others) transaction.call('FUNCTION', 'DELETE', name);
  transaction.call('FUNCTION', 'LOAD', 'REPLACE', functionsLibrary());
  for (const [error] of (await transaction.exec()) ?? []) if (error) throw error;
  return others;
}
