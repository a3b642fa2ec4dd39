/** The one interface of all sources: asked once a tick for every signal they give, they answer or say why not. Stage: sense. */
import { createHash } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import { unescaped } from '../login.js';
import type { Signal } from '../policy/schema.js';
import type { Missing, MissingReason } from './readings.js';

/**
 * One number and the moment it speaks of. A source that has nothing newer than at its last look gives the very same
 * object again: the reader then knows it for a repetition, whatever was measured of clocks meanwhile.
 */
export interface Seen {
  readonly kind: 'value';
  readonly value: number;
  /**
   * The moment it speaks of, on the daemon's own monotonic clock: what a server says of its own clock comes in as an
   * age, so that no two clocks are compared.
   */
  readonly monotonicMs: number;
  /** Observations behind it; 1 for a gauge. */
  readonly count: number;
  /** What the number is made of, for people: `Lock:transactionid 6`. */
  readonly detail?: string;
}

/** What was found of each wanted signal, by the object that was handed in; none is left out. */
export type Look = ReadonlyMap<Signal, Seen | Missing>;

export interface Source {
  /**
   * One look for all of `wanted`: all signals, of any limiter, whose `sourceKey` is this source's. Never rejects and
   * ends within the source's deadline. Rates are taken between one look and the next, so it is for one caller, once
   * a tick; a look asked for while another is under way joins it.
   */
  look(wanted: readonly Signal[]): Promise<Look>;
  /** Ends connections and processes within a second, whatever hangs. A look under way ends as missing. */
  close(): Promise<void>;
}

/** What a source needs of the process it runs in. */
export interface SourceDeps {
  /** Where `env('X')` is looked up: here and nowhere else. */
  env: NodeJS.ProcessEnv;
  log: Logger;
  clock: Clock;
  /**
   * Path of the policy file whose text has this hash (`code` of a custom signal), or null where it is not. Without it
   * custom signals are missing: functions do not travel through Redis.
   */
  policyFile?: (code: string) => string | null;
}

/** Names and labels of a server may be megabytes, and details are stored with each tick. */
const LONGEST_DETAIL = 500;

export function shortened(detail: string): string {
  return detail.length > LONGEST_DETAIL ? `${detail.slice(0, LONGEST_DETAIL - 1)}…` : detail;
}

export function missing(reason: MissingReason, detail: string): Missing {
  return { kind: 'missing', reason, detail: shortened(detail) };
}

/** The same answer for all that was wanted. */
export function lookOf(
  wanted: readonly Signal[],
  find: (signal: Signal) => Seen | Missing,
): Map<Signal, Seen | Missing> {
  return new Map(wanted.map((signal) => [signal, find(signal)]));
}

/** A source that cannot even be asked: a variable that is not set, a package that is not there. */
export function unaskable(why: Missing): Source {
  return { look: async (wanted) => lookOf(wanted, () => why), close: async () => {} };
}

/** A text or `env('X')` as its value, or why there is none. */
export function resolved(
  value: string | { env: string },
  env: NodeJS.ProcessEnv,
): string | Missing {
  if (typeof value === 'string') return value;
  const found = env[value.env];
  if (found) return found;
  return missing('error', `the environment variable ${value.env} is not set where the daemon runs`);
}

/** The address of a database, or why there is none: of another kind of server, its driver would look for a host of any name. */
export function addressOf(
  value: string | { env: string },
  env: NodeJS.ProcessEnv,
  scheme: RegExp,
  shown: string,
): string | Missing {
  const found = resolved(value, env);
  if (typeof found !== 'string' || scheme.test(found)) return found;
  const from = typeof value === 'string' ? 'url' : `the variable ${value.env}`;
  return missing('error', `${from} holds no ${shown} address`);
}

/** Equal parts, equal key. A digest, for parts are addresses with their passwords. */
export function keyOf(...parts: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** The password in an address, which no detail and no log may show. */
export function passwordOf(url: string): string {
  return URL.canParse(url) ? unescaped(new URL(url).password) : '';
}
