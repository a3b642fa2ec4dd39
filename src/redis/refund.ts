/** The refund script as a typed call: what takes took goes back, each once. Stage: enforce. */
import { FlyballError } from '../errors.js';
import type { AlgorithmTerms } from './algorithms.js';
import type { FallbackNumbers } from './calls.js';
import type { LimiterKeys } from './keys.js';
import { type RedisClient, runScript, type ScriptCall } from './run-script.js';
import { refundScript } from './scripts.gen.js';
import { fallbackText, time } from './take-call.js';

/** Most refunds of one call: bounds the time it holds Redis. */
export const MAX_REFUNDS = 128;
/** A take that lies longer back is not given back; the script says the same. */
export const REFUND_LIFE_MS = 3_600_000;

/** What one take took. */
export interface RefundRequest {
  subject: string | null;
  cost: number;
  /** Redis time (µs) of the take; windows ask for it exactly. */
  atUs: number;
  epoch: number;
  generation: number;
  /** How it was decided; undefined: the token bucket. A leaky bucket gives nothing back. */
  terms: AlgorithmTerms | undefined;
  /** Given back once by this name, whoever asks; null: the caller asks once. */
  mark: string | null;
}

export interface RefundCall {
  keys: LimiterKeys;
  refunds: readonly RefundRequest[];
  /** Latest Redis time (µs) at which the call may still give back; null: any. */
  dueUs: number | null;
  /** The takes were decided on the shadow's keys. */
  shadow: boolean;
  fallback: FallbackNumbers;
  /** Tests only: Redis time to use instead of TIME. */
  nowUs?: number;
}

/**
 * `already`: by an earlier call with the same mark. `too_late`: an hour after the take. `moved_on`: its window is over,
 * or its bucket was emptied since (a trip, a reset, another epoch).
 */
export type RefundAnswer = 'refunded' | 'already' | 'too_late' | 'moved_on';

const ANSWERS = ['refunded', 'already', 'too_late', 'moved_on'] as const;

/** Gives back up to 128 takes of one limiter, in one call; null when the call came after `dueUs` and did nothing. */
export async function refund(redis: RedisClient, call: RefundCall): Promise<RefundAnswer[] | null> {
  const raw = await runScript(redis, refundCall(call));
  const [status, , ...codes] = Array.isArray(raw) ? (raw as number[]) : [];
  const answers = codes.map((code) => ANSWERS[code]!);
  if ((status !== 0 && status !== 1) || answers.includes(undefined as never)) {
    throw new FlyballError(
      'FLYBALL_E_SCRIPT_REPLY',
      `the reply of refund cannot be read: ${JSON.stringify(raw)?.slice(0, 200)}.`,
    );
  }
  return status === 0 ? answers : null;
}

/** Keys and arguments of a refund, as `docs/contract.md` lays them down. */
export function refundCall(call: RefundCall): ScriptCall {
  const { keys, refunds, dueUs, shadow, fallback } = call;
  const names: string[] = [keys.params];
  const args = [time(call.nowUs), dueUs ?? '', shadow ? '1' : '0', fallbackText(fallback)];
  for (const { subject, cost, atUs, epoch, generation, terms, mark } of refunds) {
    const kind = kindOf(terms);
    const total = taken(keys, kind, null, shadow);
    const own = subject === null ? total : taken(keys, kind, subject, shadow);
    names.push(mark === null ? total : keys.refund(mark), total, own);
    const window = `${terms?.windowMs ?? 0} ${terms?.cells ?? 0}`;
    const at = Math.max(0, Math.round(atUs));
    args.push(`${kind} ${at} ${epoch} ${generation} ${cost} ${window} ${mark === null ? 0 : 1}`);
  }
  return { script: refundScript as ScriptCall['script'], keys: names, args };
}

type Kind = 'b' | 'wl' | 'wc' | 'wf';

function kindOf(terms: AlgorithmTerms | undefined): Kind {
  switch (terms?.algorithm) {
    case 'sliding-log':
      return 'wl';
    case 'sliding-counter':
      return 'wc';
    case 'fixed-window':
      return 'wf';
    default:
      return 'b';
  }
}

function taken(keys: LimiterKeys, kind: Kind, subject: string | null, shadow: boolean): string {
  if (kind !== 'b') return keys.taken(kind, subject, shadow);
  if (subject === null) return shadow ? keys.shadowBucket : keys.bucket;
  return shadow ? keys.shadowSubjectBucket(subject) : keys.subjectBucket(subject);
}
