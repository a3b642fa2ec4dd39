/** Limiters of one upstream open and come back together: each leader tells its breaker in one hash, and reads the others'. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { BreakerMemory, UpstreamWord } from '../decide/breaker-types.js';
import type { Decision } from '../decide/types.js';
import { newestWord, TOLD_STATES, type ToldBreaker, toldOf } from '../decide/upstream-news.js';
import type { Logger } from '../log.js';
import type { Policy } from '../policy/schema.js';
import { fleetKeys, type LimiterAddress } from '../redis/keys.js';
import type { Params } from '../redis/params.js';

/** The hash lives this long after the last word, and a word that stands is told again within it. */
const KEEP_MS = 86_400_000;
const AGAIN_MS = 60_000;

export interface UpstreamBreaker {
  /** The newest word of another limiter; undefined: the policy names no upstream, or nobody has told. */
  read(policy: Policy, nowMs: number): Promise<UpstreamWord | undefined>;
  /** How this limiter's breaker stands after a turn whose decision is in force. */
  tell(
    policy: Policy,
    breaker: BreakerMemory,
    decision: Decision,
    params: Params,
    nowMs: number,
  ): Promise<void>;
}

export function createUpstreamBreaker(deps: {
  redis: RedisClient;
  address: LimiterAddress;
  log: Logger;
}): UpstreamBreaker {
  const { redis, address, log } = deps;
  const me = address.name;
  let entered: string | null = null;
  let told = { text: '', atMs: Number.NEGATIVE_INFINITY };
  let failing = false;

  /** The hash of that upstream; a limiter that left one takes its word along. */
  async function enter(upstream: string | undefined): Promise<string | null> {
    const key = upstream === undefined ? null : fleetKeys(address.prefix).upstream(upstream);
    if (key === entered) return key;
    if (entered !== null) await redis.hdel(entered, me);
    entered = key;
    told = { text: '', atMs: Number.NEGATIVE_INFINITY };
    return key;
  }

  /** Without Redis's word on the others each breaker goes by its own evidence. */
  async function trying<T>(upstream: string | undefined, ask: () => Promise<T>) {
    try {
      const answer = await ask();
      failing = false;
      return answer;
    } catch (error) {
      if (!failing) {
        log.warn(
          { event: 'upstream_unread', limiter: me, err: error },
          `What the limiters of upstream ${upstream ?? 'of before'} tell each other could not be read or told: ${(error as Error).message}. ${me} goes by its own evidence.`,
        );
      }
      failing = true;
      return undefined;
    }
  }

  return {
    read(policy, nowMs) {
      const name = policy.breaker?.upstream;
      return trying(name, async () => {
        const key = await enter(name);
        if (key === null || name === undefined) return undefined;
        const others = new Map<string, ToldBreaker>();
        for (const [by, text] of Object.entries(await redis.hgetall(key))) {
          const record = by === me ? null : parse(text);
          if (record !== null) others.set(by, record);
        }
        return newestWord(name, others, nowMs);
      });
    },
    async tell(policy, breaker, decision, params, nowMs) {
      const key = entered;
      if (key === null) return;
      const text = JSON.stringify(toldOf(breaker, decision, params.openUntil, nowMs));
      if (text === told.text && nowMs - told.atMs < AGAIN_MS && nowMs >= told.atMs) return;
      await trying(policy.breaker?.upstream, async () => {
        const reply = await redis.multi().hset(key, me, text).pexpire(key, KEEP_MS).exec();
        const [failed] = reply?.find(([error]) => error !== null) ?? [null];
        if (failed) throw failed;
        told = { text, atMs: nowMs };
      });
    },
  };
}

function parse(text: string): ToldBreaker | null {
  try {
    const record = JSON.parse(text) as ToldBreaker;
    const { state, round, untilMs } = record;
    const sound = [round, untilMs].every((n) => Number.isFinite(n) && n >= 0);
    return sound && TOLD_STATES.includes(state) ? { state, round, untilMs } : null;
  } catch {
    return null;
  }
}
