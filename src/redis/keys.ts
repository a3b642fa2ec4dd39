/** The name of every Redis key, in one place; nothing else spells a key. Stage: all that touch Redis. */
import { createHash } from 'node:crypto';
import { FlyballTypeError } from '../errors.js';

export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;
export const DEFAULT_PREFIX = 'flyball';

/** Where a limiter lives: its name, its group if it shares a hash tag, the key prefix. */
export interface LimiterAddress {
  name: string;
  group?: string | undefined;
  prefix?: string | undefined;
}

/** Sliding log, sliding counter, fixed window, pacing. */
export type TakenKind = 'wl' | 'wc' | 'wf' | 'wp';

export interface LimiterKeys {
  /** The limiter's name, and the channel on which its changes are noticed (not keys). */
  readonly name: string;
  readonly changes: string;
  readonly params: string;
  readonly bucket: string;
  readonly shadowBucket: string;
  readonly inFlight: string;
  readonly slots: string;
  readonly audit: string;
  /** What the log keeps, and how far each exporter has got. */
  readonly retention: string;
  readonly lease: string;
  readonly state: string;
  readonly status: string;
  readonly history: string;
  readonly policy: string;
  /** Who asks for decision samples now, and the samples. */
  readonly tail: string;
  readonly samples: string;
  subjectBucket(subject: string): string;
  shadowSubjectBucket(subject: string): string;
  /** What the other algorithms keep, apart from the buckets: `wl`, `wc`, `wf` windows, `wp` the pacing queue. */
  taken(kind: TakenKind, subject: string | null, shadow: boolean): string;
  /** Says that a refund was made; `mark` is the random part of a decision's id. */
  refund(mark: string): string;
  /** What a person said of single subjects. */
  readonly overrides: string;
  /** What stands of a subject: its outcomes in a row. */
  standing(subject: string): string;
  /** Says that an outcome was counted. */
  outcome(id: string): string;
  /** Past the most live subjects: the index of them, and the bucket that newcomers share. */
  crowd(kind: 'b' | TakenKind, shadow: boolean): { index: string; shared: string };
  /** Who owes what the total's bucket lacks, while it refuses somebody: for `fair`. */
  owed(shadow: boolean): string;
  telemetry(second: number): string;
  /** The heaviest subjects of one minute (of Redis time, since 1970). */
  top(minute: number): string;
  policyVersion(hash: string): string;
  /** The last policies adopted: their text, by whom, when. */
  readonly sources: string;
}

/**
 * The keys of one limiter. All share one hash tag, so one script call is always on one cluster slot:
 * `flyball:{checkout}:params`, or in a group `flyball:checkout{payments}:params`. Names hold no braces,
 * so no two limiters collide.
 */
export function limiterKeys(address: LimiterAddress): LimiterKeys {
  const { name, group, prefix = DEFAULT_PREFIX } = address;
  assertName('limiter', name);
  if (group !== undefined) assertName('group', group);
  const base = group === undefined ? `${prefix}:{${name}}` : `${prefix}:${name}{${group}}`;
  return {
    name,
    changes: fleetKeys(prefix).changes,
    params: `${base}:params`,
    bucket: `${base}:b`,
    shadowBucket: `${base}:s:b`,
    inFlight: `${base}:f`,
    slots: `${base}:fs`,
    audit: `${base}:audit`,
    retention: `${base}:retention`,
    lease: `${base}:lease`,
    state: `${base}:state`,
    status: `${base}:status`,
    history: `${base}:h`,
    policy: `${base}:policy`,
    tail: `${base}:tail`,
    samples: `${base}:samples`,
    subjectBucket: (subject) => `${base}:b:${encodeSubject(subject)}`,
    shadowSubjectBucket: (subject) => `${base}:s:b:${encodeSubject(subject)}`,
    taken: (kind, subject, shadow) => {
      const total = `${base}${shadow ? ':s' : ''}:${kind}`;
      return subject === null ? total : `${total}:${encodeSubject(subject)}`;
    },
    refund: (mark) => `${base}:r:${mark}`,
    overrides: `${base}:o`,
    standing: (subject) => `${base}:ts:${encodeSubject(subject)}`,
    outcome: (id) => `${base}:oc:${encodeSubject(id)}`,
    crowd: (kind, shadow) => {
      const half = shadow ? `${base}:s` : base;
      // No subject is encoded as `#` alone.
      return { index: `${half}:x:${kind}`, shared: `${half}:${kind}:#` };
    },
    owed: (shadow) => `${base}${shadow ? ':s' : ''}:owed`,
    telemetry: (second) => `${base}:t:${second}`,
    top: (minute) => `${base}:top:${minute}`,
    policyVersion: (hash) => `${base}:policy:${hash}`,
    sources: `${base}:sources`,
  };
}

/** Fleet-wide keys: the limiter registry (name → group), the daemon registry, the change channel. */
export function fleetKeys(prefix = DEFAULT_PREFIX) {
  return {
    limiters: `${prefix}:limiters`,
    daemons: `${prefix}:daemons`,
    /** Limiters that share a downstream: what each may have of it. */
    downstream: (name: string) => `${prefix}:downstream:${name}`,
    /** Limiters whose breakers are one upstream's: how each of them stands. */
    upstream: (name: string) => `${prefix}:upstream:${name}`,
    /** What all autopilots may still change. */
    budget: `${prefix}:budget`,
    /** What alerts have been told, by key of the alert. */
    alerts: `${prefix}:alerts`,
    /** Who exports audit logs to a folder now. */
    exporter: (folder: string) => `${prefix}:exporter:${folder}`,
    changes: `${prefix}:changes`,
  } as const;
}

/**
 * Subject → key part, injectively: bytes other than `[A-Za-z0-9._:@-]` are percent-encoded, so that no
 * subject holds a brace or a line break; above 64 encoded bytes it is `#` + SHA-256 in base64url
 * (`#` never leaves the encoder otherwise). The same rule holds in every language: `docs/contract.md`.
 */
export function encodeSubject(subject: string): string {
  let encoded = '';
  let plain = true;
  for (let i = 0; i < subject.length; i++) {
    const c = subject.charCodeAt(i);
    const safe =
      (c >= 48 && c <= 58) || // 0-9 and ':'
      (c >= 64 && c <= 90) || // '@' and A-Z
      (c >= 97 && c <= 122) ||
      c === 45 ||
      c === 46 ||
      c === 95;
    if (!safe) {
      plain = false;
      break;
    }
  }
  if (plain) encoded = subject;
  else {
    for (const byte of Buffer.from(subject, 'utf8')) {
      const ch = String.fromCharCode(byte);
      encoded += /[A-Za-z0-9._:@-]/.test(ch)
        ? ch
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    }
  }
  if (encoded.length <= 64) return encoded;
  return `#${createHash('sha256').update(subject, 'utf8').digest('base64url')}`;
}

/** The subject that a key part stands for, to be shown; one that was hashed stays as it is. */
export function decodeSubject(part: string): string {
  if (part.startsWith('#')) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    // Bytes that are no UTF-8: nothing of ours wrote them.
    return part;
  }
}

export function assertName(what: 'limiter' | 'group', name: unknown): asserts name is string {
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    throw new FlyballTypeError(
      'FLYBALL_E_NAME_INVALID',
      `${what} name ${JSON.stringify(name)} is not allowed. Use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.`,
    );
  }
}
