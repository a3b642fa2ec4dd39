/** What daemons tell each other of themselves: one hash, by Redis's own clock. Stage: daemon. */
import { fleetKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { announceScript } from './scripts.gen.js';

export interface AnnounceCall {
  prefix?: string | undefined;
  /** Unique to one start of one process. */
  owner: string;
  /** What the daemon says of itself; null: it leaves. */
  record: object | null;
  /** Who is silent for longer does not live. */
  livesMs: number;
  /** Tests only: Redis time to use instead of TIME. */
  nowUs?: number;
}

/** Says that this daemon lives, or leaves, and resolves to the owners of all that live. */
export async function announce(redis: RedisClient, call: AnnounceCall): Promise<string[]> {
  const { prefix, owner, record, livesMs, nowUs } = call;
  const reply = (await runScript(redis, {
    script: announceScript,
    keys: [fleetKeys(prefix).daemons],
    args: [nowUs ?? '', owner, record === null ? '' : JSON.stringify(record), livesMs],
  })) as string[];
  return reply.slice(1);
}
