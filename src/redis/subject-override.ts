/** What a person says of one subject: how it is stored, and the one script that stores it. Stage: actuate. */
import type { ActuateReply, SealedEntry } from './calls.js';
import { encodeSubject, type LimiterKeys } from './keys.js';
import { readActuateReply } from './replies.js';
import { type RedisClient, runScript } from './run-script.js';
import { overrideScript } from './scripts.gen.js';
import { time } from './take-call.js';

/** Most overrides of one limiter; the script holds to it. */
export const MAX_OVERRIDES = 1_000;

/**
 * `block` denies; `exempt` denies neither by the subject's bucket nor by the total; `limit` gives the subject's bucket
 * numbers of its own: what is null stays the policy's.
 */
export interface SubjectRule {
  kind: 'block' | 'exempt' | 'limit';
  /** Redis ms; -1: until a person ends it. */
  untilMs: number;
  rate: number | null;
  capacity: number | null;
}

export interface SubjectOverride extends SubjectRule {
  /** As it was given, its end cut off if it is long. */
  subject: string;
  by: string;
  /** The person's own words, or empty. */
  why: string;
  /** The revision that set it: its audit entry says more. */
  revision: number;
}

const SHOWN = 200;

/** What the hash holds: numbers for the scripts, and on a second line what people read. */
export function overrideText(override: SubjectOverride): string {
  const { kind, untilMs, rate, capacity, revision, subject, by, why } = override;
  const words = { subject: cut(subject), by: cut(by), why: cut(why) };
  const numbers = `${kind} ${untilMs} ${rate ?? '-'} ${capacity ?? '-'} ${revision}`;
  return `${numbers}\n${JSON.stringify(words)}`;
}

/** Null for text that the scripts would not read either. */
export function parseOverride(field: string, text: string): SubjectOverride | null {
  const [numbers = '', words = ''] = text.split('\n', 2);
  const match = /^(block|exempt|limit) (-?\d+) (\S+) (\S+)(?: (\d+))?$/.exec(numbers);
  if (!match) return null;
  const [, kind, untilMs, rateText, capacityText, revision] = match;
  const rate = partOf(rateText!, 1e6);
  const capacity = partOf(capacityText!, 1e9);
  const until = Number(untilMs);
  if (until < -1 || until > 2 ** 53) return null;
  if (kind === 'limit' && rate === null && capacity === null) return null;
  return {
    kind: kind as SubjectRule['kind'],
    untilMs: until,
    rate,
    capacity,
    revision: Number(revision ?? 0),
    ...wordsOf(field, words),
  };
}

/** As the scripts read a rate or a capacity: what could not be held says nothing. */
function partOf(text: string, most: number): number | null {
  const value = /^\d+\.?\d*(e[+-]?\d+)?$/i.test(text) && text.length <= 32 ? Number(text) : 0;
  return value >= 1e-9 && value <= most ? value : null;
}

/** Does it hold at this Redis time? */
export function inForceAt(rule: SubjectRule, nowMs: number): boolean {
  return rule.untilMs === -1 || rule.untilMs > nowMs;
}

/** All of a limiter, those that are over but not removed yet too, by subject. */
export async function readOverrides(
  redis: RedisClient,
  keys: LimiterKeys,
): Promise<Map<string, SubjectOverride>> {
  // Under another type there are none: that must keep nobody from acting.
  const hash = await redis.hgetall(keys.overrides).catch((error: Error) => {
    if (error.message.startsWith('WRONGTYPE')) return {};
    throw error;
  });
  const out = new Map<string, SubjectOverride>();
  for (const [field, text] of Object.entries(hash)) {
    const override = parseOverride(field, text);
    if (override !== null) out.set(field, override);
  }
  return out;
}

export interface OverrideCall {
  keys: LimiterKeys;
  expected: { epoch: number; revision: number };
  subject: string;
  /** Null: none any more. */
  override: SubjectOverride | null;
  entry: SealedEntry;
  nowUs?: number;
}

/** Stores or removes one, with its audit entry and a new revision, or writes nothing and says why. */
export async function overrideSubject(
  redis: RedisClient,
  call: OverrideCall,
): Promise<ActuateReply> {
  const { keys, expected, subject, override, entry } = call;
  return readActuateReply(
    await runScript(redis, {
      script: overrideScript,
      keys: [
        keys.params,
        keys.audit,
        keys.overrides,
        keys.subjectBucket(subject),
        keys.shadowSubjectBucket(subject),
        keys.standing(subject),
      ],
      args: [
        time(call.nowUs),
        expected.epoch,
        expected.revision,
        entry.prev,
        entry.hash,
        entry.body,
        keys.changes,
        keys.name,
        encodeSubject(subject),
        override === null ? '' : overrideText(override),
      ],
    }),
  );
}

function wordsOf(field: string, text: string): Pick<SubjectOverride, 'subject' | 'by' | 'why'> {
  let words: Record<string, unknown> = {};
  try {
    words = (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    // Numbers alone are enough for the scripts.
  }
  const { subject, by, why } = words;
  return {
    subject: typeof subject === 'string' ? subject : field,
    by: typeof by === 'string' ? by : '',
    why: typeof why === 'string' ? why : '',
  };
}

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text;
}
