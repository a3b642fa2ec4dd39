/** Whether the exporters of audit logs keep up, as they tell it in Redis; for `doctor`. Stage: cli. */
import { limiterKeys } from '../redis/keys.js';
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
  const [seconds] = await redis.time();
  const nowMs = Number(seconds) * 1000;
  const exporters = new Map<string, Behind>();
  for (const address of await listLimiters(session)) {
    const keys = limiterKeys(address);
    const told = await redis.hgetall(keys.retention);
    for (const [field, value] of Object.entries(told)) {
      if (!field.startsWith('@')) continue;
      const [id = ''] = value.split(' ');
      if (!/^\d+-\d+$/.test(id)) continue;
      const behind = exporters.get(field) ?? { limiters: [], oldestMs: nowMs };
      exporters.set(field, behind);
      const [next] = await redis.xrange(keys.audit, `(${id}`, '+', 'COUNT', 1);
      const sinceMs = next === undefined ? nowMs : Number.parseInt(next[0], 10);
      if (nowMs - sinceMs <= BEHIND_MS) continue;
      behind.limiters.push(address.name);
      behind.oldestMs = Math.min(behind.oldestMs, sinceMs);
    }
  }
  return [...exporters].map(([field, { limiters, oldestMs }]) => {
    const check = 'audit export';
    const name = clean(field.slice(1));
    if (limiters.length === 0) return { check, status: 'ok', message: `${name} has all entries` };
    return {
      ...{ check, status: 'warn' },
      message: `${name} lacks entries of ${limiters.join(', ')}, the oldest for ${span(nowMs - oldestMs)}`,
      mend: "Look at the daemons' logs (audit_export…): a full disk, a database that is away, or no daemon that exports.",
    };
  });
}
