/** What one owner leaves for the next: the law's state, would-be values, since when the state holds. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { reviveDecideState } from '../decide/state.js';
import type { DecideState } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { StateSince } from './view.js';
import type { WouldBe } from './would-be.js';

/** Stored by the actuate and heartbeat scripts only; JSON of at most 4 KB. */
export interface Checkpoint {
  v: 1;
  decide: DecideState;
  since: StateSince | null;
  wouldBe: WouldBe | null;
}

/** Reads the checkpoint; what is missing, of another version or another law begins anew, without a bump. */
export async function readCheckpoint(
  redis: RedisClient,
  address: LimiterAddress,
  policy: Policy,
): Promise<Checkpoint> {
  // MGET: a key of another type reads as none.
  const [text] = await redis.mget(limiterKeys(address).state);
  let stored: Partial<Checkpoint> = {};
  try {
    const parsed: unknown = JSON.parse(text ?? '{}');
    if ((parsed as Partial<Checkpoint> | null)?.v === 1) stored = parsed as Checkpoint;
  } catch {
    // A checkpoint that is not JSON is as good as none.
  }
  return {
    v: 1,
    decide: reviveDecideState(policy, stored.decide),
    since: stored.since ?? null,
    wouldBe: stored.wouldBe ?? null,
  };
}

/** The bytes that the scripts store. */
export function checkpointText(checkpoint: Omit<Checkpoint, 'v'>): string {
  return JSON.stringify({ ...checkpoint, v: 1 } satisfies Checkpoint);
}
