/** What has been told already, fleet-wide: a hash in Redis, so that the next leader neither tells it again nor forgets its end. Stage: report. */
import { z } from 'zod';
import { ALERT_KINDS } from '../../policy/notify-schema.js';
import { fleetKeys } from '../../redis/keys.js';
import type { RedisClient } from '../../redis/run-script.js';
import type { Alert } from './alert.js';

/** An alert as Redis keeps it. */
export interface KnownAlert {
  alert: Alert;
  /** The daemon that answers for it: it sees it, reminds of it and repeats it. */
  keeper: string;
  /** Counted up by its keeper; 0: nobody is known to have been told yet. */
  beat: number;
  /** Wall ms of when it was told last. */
  remindedMs: number;
  /** Of one that is over: since when it was firing. */
  beganMs?: number;
}

export interface KnownAlerts {
  /** `new`: to be told, by the caller alone; `unanswered`: Redis did not say. */
  claim(known: KnownAlert): Promise<'new' | 'known' | 'unanswered'>;
  /** What is there is replaced. */
  put(known: KnownAlert): Promise<void>;
  /** `removed`: it was known, and its end is to be told, by the caller alone. */
  end(key: string): Promise<{ removed: boolean; was: Alert | null } | 'unanswered'>;
  /** Takes out what was found so, of which nobody has been told; true: it is to be told, by the caller alone. */
  takeUntold(found: KnownAlert): Promise<boolean>;
  /** Which of these keys are firing. */
  firing(keys: readonly string[]): Promise<string[]>;
  /** Page by page; what no daemon of today can read is removed. Rejects when Redis does not answer. */
  each(visit: (known: KnownAlert) => Promise<void>): Promise<void>;
  forget(key: string): Promise<void>;
}

/** Without any daemon that looks after it the hash goes by itself. */
const KEPT_MS = 7 * 86_400_000;
const PAGE = 200;

export function createKnownAlerts(redis: RedisClient, prefix: string): KnownAlerts {
  const key = fleetKeys(prefix).alerts;

  /** What another type left there is thrown away, and asked again. */
  async function asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!(error as Error).message.startsWith('WRONGTYPE')) throw error;
      await redis.del(key);
      return ask();
    }
  }

  async function anyhow<T, U>(ask: () => Promise<T>, without: U): Promise<T | U> {
    try {
      return await asked(ask);
    } catch {
      return without;
    }
  }

  return {
    claim: (known) =>
      anyhow(async () => {
        const fresh = await redis.hsetnx(key, known.alert.key, textOf(known));
        await redis.pexpire(key, KEPT_MS);
        return fresh === 1 ? 'new' : 'known';
      }, 'unanswered'),
    async put(known) {
      await anyhow(async () => {
        await redis.hset(key, known.alert.key, textOf(known));
        await redis.pexpire(key, KEPT_MS);
      }, undefined);
    },
    end: (alertKey) =>
      anyhow(async () => {
        // In this order on one connection; only one daemon's removal finds something.
        const [text, removed] = await Promise.all([
          redis.hget(key, alertKey),
          redis.hdel(key, alertKey),
        ]);
        return { removed: removed === 1, was: readKnown(text ?? '')?.alert ?? null };
      }, 'unanswered'),
    takeUntold: ({ alert, keeper }) =>
      anyhow(async () => {
        const found = await redis.multi().hget(key, alert.key).hdel(key, alert.key).exec();
        const there = String(found?.[0]?.[1] ?? '');
        const was = readKnown(there);
        if (was === null) return false;
        if (was.keeper === keeper && was.beat === 0) return true;
        // Another daemon was quicker: what stands there since is its own.
        await redis.hsetnx(key, alert.key, there);
        return false;
      }, false),
    async firing(keys) {
      if (keys.length === 0) return [];
      const texts = await anyhow(() => redis.hmget(key, ...keys), []);
      return keys.filter((_, i) => readKnown(texts[i] ?? '')?.alert.state === 'firing');
    },
    async each(visit) {
      let cursor = '0';
      do {
        const [next, flat] = await asked(() => redis.hscan(key, cursor, 'COUNT', PAGE));
        const strange: string[] = [];
        for (let i = 0; i < flat.length; i += 2) {
          const known = readKnown(flat[i + 1]!);
          if (known !== null && known.alert.key === flat[i]) await visit(known);
          else strange.push(flat[i]!);
        }
        if (strange.length > 0) await redis.hdel(key, ...strange);
        cursor = next;
      } while (cursor !== '0');
    },
    async forget(alertKey) {
      await anyhow(() => redis.hdel(key, alertKey), 0);
    },
  };
}

/** Where one that is over is kept for who looks back: beside what fires, of which a name may begin anew. */
export const endedKey = (key: string) => `flyball/ended/${key}`;

/** All that can be read, at most so many. Writes nothing, unlike `each`. */
export async function readKnownAlerts(
  redis: RedisClient,
  prefix: string | undefined,
  most: number,
): Promise<KnownAlert[]> {
  const key = fleetKeys(prefix).alerts;
  const found = new Map<string, KnownAlert>();
  let cursor = '0';
  do {
    const page = await redis.hscan(key, cursor, 'COUNT', PAGE).catch((error: Error) => {
      // Of another type: no alert has been told.
      if (error.message.startsWith('WRONGTYPE')) return ['0', []] as [string, string[]];
      throw error;
    });
    for (let i = 0; i < page[1].length; i += 2) {
      const known = readKnown(page[1][i + 1]!);
      if (known !== null && known.alert.key === page[1][i]) found.set(known.alert.key, known);
    }
    cursor = page[0];
  } while (cursor !== '0' && found.size < most);
  return [...found.values()];
}

const LONGEST = 10_000;
const text = z.string().max(LONGEST);

/** Anybody may have written there: what is told of it must be whole. */
const recordSchema = z.object({
  key: text,
  kind: z.enum(ALERT_KINDS),
  severity: z.enum(['critical', 'warning', 'info']),
  state: z.enum(['firing', 'event', 'resolved']),
  limiter: text.nullable(),
  owner: text.nullable(),
  what: text,
  why: text,
  who: text,
  numbers: z.array(z.tuple([text, text])).max(20),
  undo: text.nullable(),
  look: text,
  // The last moment that a Date can tell.
  atMs: z.number().min(0).max(8.64e15),
  keeper: text,
  beat: z.number().min(0),
  remindedMs: z.number(),
  beganMs: z.number().min(0).max(8.64e15).optional(),
});

function textOf({ alert, ...rest }: KnownAlert): string {
  return JSON.stringify({ ...alert, ...rest });
}

function readKnown(json: string): KnownAlert | null {
  try {
    const { keeper, beat, remindedMs, beganMs, ...alert } = recordSchema.parse(JSON.parse(json));
    return { alert, keeper, beat, remindedMs, ...(beganMs !== undefined && { beganMs }) };
  } catch {
    return null;
  }
}
