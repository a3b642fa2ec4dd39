/** What this user may do on the keys of a limiter, as the server itself says; for `doctor`. Stage: cli. */
import { limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import type { Finding } from './doctor-redis.js';

/** Asks the server what this user may do, on keys of a limiter that does not exist; writes nothing. */
export async function rights(redis: RedisClient, prefix: string | undefined): Promise<Finding> {
  const keys = limiterKeys({ name: 'doctor', prefix });
  const script = `#!lua flags=no-writes
local refused = {}
local function may(...) if not redis.acl_check_cmd(...) then refused[#refused + 1] = (...) end end
may('HSET', KEYS[1], 'f', 'v') may('HGETALL', KEYS[1])
may('XADD', KEYS[2], '*', 'f', 'v') may('XREVRANGE', KEYS[2], '+', '-')
may('SET', KEYS[3], 'v', 'PX', '1') may('GET', KEYS[3]) may('TIME')
return refused`;
  const mend = 'Use the daemon user of deploy/redis/users.acl.';
  try {
    const refused = (await redis.eval(script, 3, keys.params, keys.audit, keys.state)) as string[];
    if (refused.length === 0) {
      return { check: 'rights', status: 'ok', message: 'this user may read and change limiters' };
    }
    return {
      check: 'rights',
      status: 'fail',
      message: `this user may not ${refused.join(', ')} on the keys of a limiter`,
      mend,
    };
  } catch (error) {
    return {
      check: 'rights',
      status: 'fail',
      message: `this user may not run scripts: ${(error as Error).message}`,
      mend,
    };
  }
}
