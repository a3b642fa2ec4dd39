/** Takes of several limiters in one call, all or none: keys, arguments and reply of the script `together`. Stage: enforce. */
import { FlyballError } from '../errors.js';
import type { FallbackNumbers, InForce, TakeAnswer, TakeRequest } from './calls.js';
import type { LimiterKeys } from './keys.js';
import { readInForce, TAKE_REASONS } from './replies.js';
import { type RedisClient, runScript, type ScriptCall } from './run-script.js';
import { togetherScript } from './scripts.gen.js';
import { fallbackText, takeText, time } from './take-call.js';

/** Most limiters of a set: bounds what one take reads. */
export const MAX_TOGETHER = 16;

/** One limiter of a set. All of a set share a hash tag. */
export interface TogetherLimiter {
  keys: LimiterKeys;
  fallback: FallbackNumbers;
  /** Use the shadow's buckets; the script refuses (`status: 'mode'`) when params say otherwise. */
  shadow: boolean;
  /** A rollout has not reached the takes: `keys` name the shadow's buckets, and it denies nobody. */
  apart?: boolean;
}

export interface TogetherCall {
  limiters: readonly TogetherLimiter[];
  /** In order; each has one take a limiter. */
  sets: readonly (readonly TakeRequest[])[];
  /** As in `TakeCall`. */
  chargeByUs: number | null | 'any';
  /** Tests only. */
  nowUs?: number;
}

export interface TogetherReply {
  status: 'ok' | 'late' | 'mode';
  nowUs: number;
  /** One a limiter. */
  inForce: InForce[];
  /** Empty unless status is `ok`. What each limiter alone answered: tokens went only if all of a set admit. */
  sets: TakeAnswer[][];
}

const STATUS = ['ok', 'late', 'mode'] as const;

/** Decides sets of takes in order, each all or none, in one call. */
export async function together(redis: RedisClient, call: TogetherCall): Promise<TogetherReply> {
  return readTogetherReply(await runScript(redis, togetherCall(call)), call.limiters.length);
}

/** Keys and arguments of it, as `docs/contract.md` lays them down. */
export function togetherCall(call: TogetherCall): ScriptCall {
  const { limiters, sets, chargeByUs } = call;
  const keys = limiters.flatMap(({ keys, shadow }) => [keys.params, totalOf(keys, shadow)]);
  const terms = limiters.flatMap(({ shadow, apart, fallback }) => [
    shadow ? '1' : apart ? '2' : '0',
    fallbackText(fallback),
  ]);
  for (const takes of sets) {
    for (const [i, take] of takes.entries()) {
      const { keys: own, shadow } = limiters[i]!;
      if (take.subject === null) keys.push(totalOf(own, shadow));
      else
        keys.push(shadow ? own.shadowSubjectBucket(take.subject) : own.subjectBucket(take.subject));
      terms.push(takeText(take));
    }
  }
  const chargeBy = chargeByUs === 'any' ? '' : (chargeByUs ?? '0');
  const args = [time(call.nowUs), chargeBy, limiters.length, ...terms];
  return { script: togetherScript as ScriptCall['script'], keys, args };
}

function totalOf(keys: LimiterKeys, shadow: boolean): string {
  return shadow ? keys.shadowBucket : keys.bucket;
}

function readTogetherReply(raw: unknown, size: number): TogetherReply {
  const reply = raw as (number | string)[];
  const status = Array.isArray(reply) ? STATUS[reply[0] as number] : undefined;
  if (status === undefined) {
    throw new FlyballError(
      'FLYBALL_E_SCRIPT_REPLY',
      `the reply of together cannot be read: ${JSON.stringify(raw)?.slice(0, 200)}. Do SDK and daemon run versions that fit each other?`,
    );
  }
  const sets: TakeAnswer[][] = [];
  for (let i = 2 + size; i < reply.length; i += 3) {
    if (sets.length === 0 || sets.at(-1)!.length === size) sets.push([]);
    const code = reply[i] as number;
    const retry = reply[i + 2] as number;
    sets.at(-1)!.push({
      allowed: code <= 1,
      reason: TAKE_REASONS[code]!,
      remaining: reply[i + 1] as number,
      retryAfterMs: retry < 0 ? null : code <= 1 ? 0 : retry,
    });
  }
  return {
    status,
    nowUs: reply[1] as number,
    inForce: reply.slice(2, 2 + size).map((text) => readInForce(text as string)),
    sets,
  };
}
