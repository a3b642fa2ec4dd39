/** The params of one limiter, turn after turn: their fields travel only when they are not as they were. Stage: sense, actuate. */
import type { FlyballError } from '../errors.js';
import { type LimiterAddress, limiterKeys } from './keys.js';
import { type Params, parseParams } from './params.js';
import { readMarked } from './read-marked.js';
import type { RedisClient } from './run-script.js';
import { rereadScript } from './scripts.gen.js';

export interface ParamsNow {
  /** Null when missing, or `unreadable`: the scripts take such for missing, so they can be created anew. */
  params: Params | null;
  unreadable: FlyballError | null;
  /** Redis time of the node that holds them. */
  nowUs: number;
}

/** Limiters of one call: fields are many, and Redis looks at all. */
const MOST_KEYS = 16;

const read = readMarked({ script: rereadScript, each: 3, most: MOST_KEYS });

export function createParamsReader(
  redis: RedisClient,
  address: LimiterAddress,
): () => Promise<ParamsNow> {
  const { params: key } = limiterKeys(address);
  let last: { mark: string; params: Params } | null = null;

  return async function again(): Promise<ParamsNow> {
    const { replies, nowUs } = await read(redis, [{ key, mark: last?.mark ?? '' }]);
    const [validUntil, mark, list] = replies as [string, string, string[] | null];
    if (list === null && last !== null && last.mark === mark) {
      // Only the word moves, with each beat.
      if (!/^\d+$/.test(validUntil)) {
        last = null;
        return again();
      }
      if (Number(validUntil) !== last.params.validUntil) {
        last = { mark, params: { ...last.params, validUntil: Number(validUntil) } };
      }
      return { params: last.params, unreadable: null, nowUs };
    }
    const fields: Record<string, string> = validUntil === '' ? {} : { validUntil };
    for (let i = 0; list !== null && i < list.length; i += 2) fields[list[i]!] = list[i + 1]!;
    last = null;
    try {
      const params = parseParams(fields);
      if (params !== null) last = { mark, params };
      return { params, unreadable: null, nowUs };
    } catch (error) {
      return { params: null, unreadable: error as FlyballError, nowUs };
    }
  };
}
