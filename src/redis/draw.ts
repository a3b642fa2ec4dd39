/** The draw script as a typed call: tokens in blocks, and those back that were not used. Stage: enforce. */
import { FlyballError } from '../errors.js';
import type { InForce } from './calls.js';
import type { LimiterKeys } from './keys.js';
import { readInForce } from './replies.js';
import { type RedisClient, runScript, type ScriptCall } from './run-script.js';
import { drawScript } from './scripts.gen.js';
import { time } from './take-call.js';

/** Most buckets of one call: bounds the time it holds Redis. */
export const MAX_DRAWS = 128;

export interface Draw {
  /** Whole tokens. */
  want: number;
  /** Drawn earlier and not used. */
  back: number;
}

export interface DrawCall {
  keys: LimiterKeys;
  /** Of the tokens that come back. */
  epoch: number;
  total: Draw;
  subjects: readonly (Draw & { subject: string })[];
  /** Tests only: Redis time to use instead of TIME. */
  nowUs?: number;
}

export interface Drawn {
  given: number;
  /** Whole tokens left in Redis. */
  left: number;
}

export interface DrawReply {
  nowUs: number;
  /** null: there are no params. */
  inForce: InForce | null;
  /** The total's, then the subjects' in order; null: nothing is drawn in blocks now, nor was anything taken back. */
  drawn: Drawn[] | null;
}

export function drawCall({ keys, epoch, total, subjects, nowUs }: DrawCall): ScriptCall {
  const names = [keys.params, keys.bucket];
  const args = [time(nowUs), epoch, drawText(total)];
  for (const each of subjects) {
    names.push(keys.subjectBucket(each.subject));
    args.push(drawText(each));
  }
  return { script: drawScript as ScriptCall['script'], keys: names, args };
}

export function draw(redis: RedisClient, call: DrawCall): Promise<DrawReply> {
  return runScript(redis, drawCall(call), readDrawReply);
}

const drawText = ({ want, back }: Draw) => `${want} ${back}`;

function readDrawReply(raw: unknown): DrawReply {
  const reply = raw as (number | string)[];
  if (!Array.isArray(reply) || (reply[0] !== 0 && reply[0] !== 1)) {
    throw new FlyballError(
      'FLYBALL_E_SCRIPT_REPLY',
      `the reply of draw cannot be read: ${JSON.stringify(raw)?.slice(0, 200)}.`,
    );
  }
  const [status, nowUs, text, ...numbers] = reply as [number, number, string, ...number[]];
  const drawn: Drawn[] = [];
  for (let i = 0; i < numbers.length; i += 2) {
    drawn.push({ given: numbers[i]!, left: numbers[i + 1]! });
  }
  return {
    nowUs,
    inForce: text === '' ? null : readInForce(text),
    drawn: status === 0 ? drawn : null,
  };
}
