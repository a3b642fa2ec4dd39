/** What liveness, readiness and health mean for this daemon. Stage: daemon. */
import { describeFault } from '../faults.js';
import type { RedisClient } from '../redis/connect.js';
import type { HealthChecks } from '../report/http.js';
import type { Loop } from './loop.js';
import type { ManagedLimiter } from './managed-limiter.js';
import type { PolicyFiles } from './policy-files.js';

const PING_MS = 1000;

export function healthChecks(daemon: {
  loop: Loop;
  redis: RedisClient;
  policies: PolicyFiles;
  limiters: ReadonlyMap<string, ManagedLimiter>;
  /** What keeps audit logs from being exported. */
  auditFault: () => string | null;
  closing: () => boolean;
}): HealthChecks {
  const { loop, redis, policies, limiters, auditFault, closing } = daemon;
  return {
    live: {
      loop: () => (loop.alive() || closing() ? null : 'no tick within three periods'),
    },
    ready: {
      running: () => (closing() ? 'stopping' : null),
      redis: () => answers(redis),
      policies() {
        if (limiters.size === 0) return 'nothing is managed yet';
        const unread = [...limiters].filter(
          ([, limiter]) => limiter.adoptedHash === null && !limiter.empty && !limiter.watches,
        );
        return unread.length === 0
          ? null
          : `adopted policy not read yet: ${unread.map(([name]) => name).join(', ')}`;
      },
    },
    degraded: {
      'audit export': auditFault,
      'policy files'() {
        const [first] = policies.faults;
        if (first === undefined) return null;
        return `${policies.faults.length} fault(s), the adopted policies stay in force; first: ${first.file}: ${first.field} ${first.message}`;
      },
    },
  };
}

async function answers(redis: RedisClient): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((ok) => {
    timer = setTimeout(ok, PING_MS, `no answer within ${PING_MS} ms`);
  });
  const asked = redis.ping().then(
    () => null,
    (error: unknown) => describeFault(error, { reads: true }).message,
  );
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}
