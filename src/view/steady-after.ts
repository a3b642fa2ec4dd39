/** Where in a limiter's log all is over that began before a time: so that an old page of episodes reads nothing newer. Stage: cli, api. */
import { isApart } from '../audit/episodes.js';
import { readSlim } from '../audit/slim-entry.js';
import type { RedisClient } from '../redis/run-script.js';
import { endBefore } from '../redis/stream-id.js';

const PAGE = 200;

/**
 * The upper bound of a range, newest first, that holds each episode that began before `atMs` whole: unless it goes on
 * for more than `most` entries.
 */
export async function steadyAfter(
  redis: RedisClient,
  key: string,
  atMs: number,
  most: number,
): Promise<string> {
  const at = `${Math.max(0, Math.ceil(atMs))}-0`;
  let older = (await redis.xrevrange(key, endBefore(at), '-', 'COUNT', 1))[0]?.[0];
  let from = at;
  for (let read = 0; ; read += PAGE) {
    const page = await redis.xrange(key, from, '+', 'COUNT', PAGE);
    for (const [id, fields] of page) {
      if (older === undefined) return endBefore(id);
      const entry = readSlim(id, fields);
      // A note is apart from what is before it while a breaker is open, too.
      if (entry?.kind === 'change' && isApart({ id: older }, entry)) return endBefore(id);
      older = id;
    }
    if (page.length < PAGE) return '+';
    from = `(${older}`;
    if (read >= most) return older!;
  }
}
