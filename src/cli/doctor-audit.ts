/** Whether the exporters of audit logs keep up, as they tell it in Redis; for `doctor`. Stage: cli. */
import { limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import { readExporters } from '../redis/retention.js';
import { storedMs } from '../redis/stream-id.js';
import type { Finding } from './doctor-finding.js';
import { listLimiters, type Session } from './session.js';
import { clean, span } from './text.js';

/** An exporter writes within a second or two; a minute is a fault, not a pause. */
const BEHIND_MS = 60_000;

interface Behind {
  limiters: string[];
  oldestMs: number;
}

/** Nothing where nobody exports: the newest 10,000 entries stay all the same. */
export async function checkExports(session: Session): Promise<Finding[]> {
  const { redis } = session;
  const nowMs = await redisNowMs(redis);
  const exporters = new Map<string, Behind>();
  for (const address of await listLimiters(session)) {
    const keys = limiterKeys(address);
    for (const { name, through } of await readExporters(redis, keys)) {
      const behind = exporters.get(name) ?? { limiters: [], oldestMs: nowMs };
      exporters.set(name, behind);
      const [next] = await redis.xrange(keys.audit, `(${through}`, '+', 'COUNT', 1);
      const sinceMs = next === undefined ? nowMs : storedMs({ id: next[0] });
      if (nowMs - sinceMs <= BEHIND_MS) continue;
      behind.limiters.push(address.name);
      behind.oldestMs = Math.min(behind.oldestMs, sinceMs);
    }
  }
  return [...exporters].map(([exporter, { limiters, oldestMs }]) => {
    const check = 'audit export';
    const name = clean(exporter);
    if (limiters.length === 0) return { check, status: 'ok', message: `${name} has all entries` };
    return {
      ...{ check, status: 'warn' },
      message: `${name} lacks entries of ${limiters.join(', ')}, the oldest for ${span(nowMs - oldestMs)}`,
      mend: "Look at the daemons' logs (audit_export…): a full disk, a database that is away, or no daemon that exports.",
    };
  });
}
