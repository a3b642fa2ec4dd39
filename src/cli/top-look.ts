/** One look at all limiters, again and again: what has not changed since is not read anew. Stage: cli. */
import type { LimiterAddress } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import { type StatusView, statusView } from '../view/status.js';
import { createStatusReader, type StatusReader } from '../view/status-reader.js';
import { listLimiters, type Session } from './session.js';

export interface Look {
  /** Redis ms. */
  atMs: number;
  addresses: LimiterAddress[];
  views: StatusView[];
  /** Limiters that could not be read, and why. */
  unread: { limiter: string; error: unknown }[];
}

export function createLook(session: Session): () => Promise<Look> {
  const readers = new Map<string, StatusReader>();
  return async () => {
    const addresses = await listLimiters(session);
    const read = await Promise.allSettled(
      addresses.map(async (address) => {
        const name = `${address.group ?? ''}{${address.name}`;
        let reader = readers.get(name);
        if (reader === undefined) {
          reader = createStatusReader(session.redis, address);
          readers.set(name, reader);
        }
        return (await reader.read()).facts;
      }),
    );
    const facts = read.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const unread = read.flatMap((one, i) =>
      one.status === 'rejected'
        ? [{ limiter: addresses[i]!.name, error: one.reason as unknown }]
        : [],
    );
    // One limiter that cannot be read must not take the table away from the others; none at all is no answer.
    if (facts.length === 0 && unread.length > 0) throw unread[0]!.error;
    const atMs = Math.floor(facts[0]?.nowMs ?? (await redisNowMs(session.redis)));
    return { atMs, addresses, views: facts.map(statusView), unread };
  };
}
