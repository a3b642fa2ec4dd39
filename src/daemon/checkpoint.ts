/** What one owner leaves for the next: the law's state, would-be values, since when the state holds. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { reviveDecideState } from '../decide/state.js';
import type { DecideState } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { FailoverMemory } from './failover.js';
import type { StateSince } from './view.js';
import type { WouldBe } from './would-be.js';

/** Stored by the actuate and heartbeat scripts only; JSON of at most 4 KB. */
export interface Checkpoint {
  v: 1;
  decide: DecideState;
  /** Hash of the policy it was decided by; absent: of an older version. */
  policy?: string | undefined;
  since: StateSince | null;
  wouldBe: WouldBe | null;
  /** Which Redis server the writes went to, and what was lowered after the last failover. */
  failover: FailoverMemory | null;
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
    policy: typeof stored.policy === 'string' ? stored.policy : undefined,
    since: stored.since ?? null,
    wouldBe: stored.wouldBe ?? null,
    failover: readFailover(stored.failover),
  };
}

/** Of an older version, or of nothing of ours: not known. */
function readFailover(stored: Partial<FailoverMemory> | null | undefined): FailoverMemory | null {
  if (typeof stored?.runId !== 'string') return null;
  const { to, from, untilMs } = stored.lowered ?? {};
  const sound = [to, from, untilMs].every((n) => Number.isFinite(n));
  return { runId: stored.runId, lowered: sound ? (stored.lowered ?? null) : null };
}

/** The bytes that the scripts store. */
export function checkpointText(checkpoint: Omit<Checkpoint, 'v'>): string {
  return JSON.stringify({ ...checkpoint, v: 1 } satisfies Checkpoint);
}
