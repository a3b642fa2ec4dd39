/** What users may do on the keys of a limiter, as the server itself says; for `doctor`. Writes nothing. Stage: cli. */
import { fleetKeys, limiterKeys } from '../redis/keys.js';
import { masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import { type Finding, redisCli } from './doctor-finding.js';

type Command = readonly [name: string, ...args: string[]];

/** A limiter that does not exist; nobody's keys are named. */
const NAME = 'doctor';

/** What a service sends or its scripts do, one of each kind of key: deploy/redis/users.acl. */
function serviceNeeds(prefix: string | undefined): Command[] {
  const k = limiterKeys({ name: NAME, prefix });
  const total = (kind: 'wl' | 'wc' | 'wf' | 'wp') => k.taken(kind, null, false);
  return [
    ['HGETALL', k.params],
    ['GET', k.bucket],
    ['SET', k.bucket, 'v', 'PX', '1'],
    ['SET', k.subjectBucket('s'), 'v', 'PX', '1'],
    ['HSET', k.inFlight, 'p', 'v'],
    ['ZADD', k.slots, '1', 'p'],
    ['HINCRBY', k.telemetry(1), 'n', '1'],
    ['HINCRBYFLOAT', k.top(1), 's', '1'],
    ['HGETALL', k.tail],
    ['XADD', k.samples, '*', 'f', 'v'],
    ['HGET', k.overrides, 's'],
    ['SET', k.refund('m'), 'v', 'PX', '1'],
    ['SET', k.standing('s'), 'v', 'PX', '1'],
    ['SET', k.outcome('i'), 'v', 'PX', '1'],
    ['ZADD', k.owed(false), '1', 's'],
    ['ZADD', k.crowd('b', false).index, '1', 's'],
    ['RPUSH', total('wl'), 'v'],
    ['SET', total('wc'), 'v'],
    ['SET', total('wf'), 'v'],
    ['SET', total('wp'), 'v'],
    ['HGET', fleetKeys(prefix).limiters, NAME],
    ['TIME'],
  ];
}

/** What a daemon and the undo verbs need beyond that. */
function daemonNeeds(prefix: string | undefined): Command[] {
  const k = limiterKeys({ name: NAME, prefix });
  const fleet = fleetKeys(prefix);
  return [
    ['HSET', k.params, 'f', 'v'],
    ['XADD', k.audit, '*', 'f', 'v'],
    ['XREVRANGE', k.audit, '+', '-'],
    ['SET', k.lease, 'v', 'PX', '1'],
    ['GET', k.lease],
    ['SET', k.state, 'v', 'PX', '1'],
    ['SET', k.status, 'v', 'PX', '1'],
    ['HSET', k.policy, 'f', 'v'],
    ['HSET', k.history, 'f', 'v'],
    ['HSET', fleet.limiters, NAME, ''],
    ['HSET', fleet.daemons, 'd', 'v'],
    ['PUBLISH', fleet.changes, 'm'],
  ];
}

const SCRIPT = `#!lua flags=no-writes
local refused = {}
for i, command in ipairs(cjson.decode(ARGV[1])) do
  if not redis.acl_check_cmd(unpack(command)) then refused[#refused + 1] = i end
end
return refused`;

const DAEMON_MEND = 'Use the daemon user of deploy/redis/users.acl.';

export async function rights(redis: RedisClient, prefix: string | undefined): Promise<Finding[]> {
  return [await ownRights(redis, prefix), ...(await shippedUsers(redis, prefix))];
}

async function ownRights(redis: RedisClient, prefix: string | undefined): Promise<Finding> {
  const keys = limiterKeys({ name: NAME, prefix });
  const refusedOf = async (needs: Command[]) => {
    const reply = await redis.eval(SCRIPT, 1, keys.params, JSON.stringify(needs));
    return (reply as number[]).map((i) => needs[i - 1]![0]);
  };
  try {
    const service = await refusedOf(serviceNeeds(prefix));
    const daemon = await refusedOf(daemonNeeds(prefix));
    if (service.length + daemon.length === 0) {
      const message = 'this user may read and change limiters';
      return { check: 'rights', status: 'ok', message };
    }
    if (service.length === 0) {
      return {
        ...{ check: 'rights', status: 'warn', mend: DAEMON_MEND },
        message: `a user for services: it may take and report, and not change limiters (${listed(daemon)})`,
      };
    }
    return {
      ...{ check: 'rights', status: 'fail', mend: DAEMON_MEND },
      message: `this user may not ${listed([...service, ...daemon])} on the keys of a limiter`,
    };
  } catch (error) {
    return {
      ...{ check: 'rights', status: 'fail', mend: DAEMON_MEND },
      message: `this user may not run scripts: ${(error as Error).message}`,
    };
  }
}

/** Only an administrator may ask for others; to anybody else nothing is said of them. */
async function shippedUsers(redis: RedisClient, prefix: string | undefined): Promise<Finding[]> {
  const server = masters(redis)[0];
  if (server === undefined) return [];
  try {
    const users = (await server.call('ACL', 'USERS')) as string[];
    const may = async (user: string, command: Command) =>
      (await server.call('ACL', 'DRYRUN', user, ...command)) === 'OK';
    const findings: Finding[] = [];
    for (const [user, needs] of [
      ['flyball-service', serviceNeeds(prefix)],
      ['flyball-daemon', [...serviceNeeds(prefix), ...daemonNeeds(prefix)]],
    ] as const) {
      if (!users.includes(user)) continue;
      const allowed = await Promise.all(needs.map((command) => may(user, command)));
      const refused = needs.filter((_command, i) => !allowed[i]).map(([name]) => name);
      const [change] = daemonNeeds(prefix);
      const tooMuch = user === 'flyball-service' && (await may(user, change!));
      findings.push(userFinding(user, refused, tooMuch, redisCli(server, 'ACL LOAD')));
    }
    return findings;
  } catch {
    return [];
  }
}

function userFinding(
  user: string,
  refused: readonly string[],
  tooMuch: boolean,
  command: string,
): Finding {
  const check = `user ${user}`;
  const mend = 'Take over its line of deploy/redis/users.acl of this version, then load the file.';
  if (refused.length > 0) {
    const message = `may not ${listed(refused)} on the keys of a limiter`;
    return { check, status: 'fail', message, mend, command };
  }
  if (tooMuch) {
    return { check, status: 'warn', message: 'a service may change limits itself', mend, command };
  }
  return { check, status: 'ok', message: 'has the rights it needs' };
}

function listed(names: readonly string[]): string {
  return [...new Set(names)].join(', ');
}
