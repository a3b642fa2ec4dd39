/** What `doctor` asks of Redis: version, persistence, memory policy, rights, scripts, clock. Each answer names its mend. Stage: cli. */
import type { Redis } from 'ioredis';
import { limiterKeys } from '../redis/keys.js';
import {
  actuateScript,
  heartbeatScript,
  inflightScript,
  leaseScript,
  noteScript,
  takeScript,
} from '../redis/scripts.gen.js';
import { span } from './text.js';

export interface Finding {
  check: string;
  status: 'ok' | 'warn' | 'fail' | 'skipped';
  message: string;
  /** What to do; absent when all is well. */
  mend?: string;
}

const SCRIPTS = [
  takeScript,
  inflightScript,
  actuateScript,
  heartbeatScript,
  leaseScript,
  noteScript,
] as const;
const MIN_VERSION = [7, 0] as const;
/** Leases, holds and telemetry seconds are Redis's time; people and logs read ours. */
const SKEW_WARN_MS = 1000;
const SKEW_FAIL_MS = 30_000;

export async function checkRedis(redis: Redis, prefix: string | undefined): Promise<Finding[]> {
  const findings: Finding[] = [];
  const info = await readInfo(redis, findings);
  if (info) {
    findings.push(version(info), persistence(info), ...memory(info), role(info));
  }
  findings.push(await clockSkew(redis));
  findings.push(await scriptsLoad(redis));
  findings.push(await rights(redis, prefix));
  return findings;
}

type Info = Record<string, string>;

async function readInfo(redis: Redis, findings: Finding[]): Promise<Info | null> {
  try {
    const text = await redis.info();
    return Object.fromEntries(
      text
        .split(/\r?\n/)
        .filter((line) => line.includes(':'))
        .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  } catch (error) {
    findings.push({
      check: 'info',
      status: 'warn',
      message: `INFO is refused (${(error as Error).message}): version, persistence and memory cannot be seen.`,
      mend: 'Allow +info to this user.',
    });
    return null;
  }
}

export function version(info: Info): Finding {
  const text = info.redis_version ?? '?';
  const [major = 0, minor = 0] = text.split('.').map(Number);
  const enough = major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
  const name = info.valkey_version ? `Valkey ${info.valkey_version}` : `Redis ${text}`;
  if (enough) return { check: 'version', status: 'ok', message: name };
  return {
    check: 'version',
    status: 'fail',
    message: `${name} is older than ${MIN_VERSION.join('.')}`,
    mend: 'Upgrade Redis to 7.0 or newer.',
  };
}

export function persistence(info: Info): Finding {
  if (info.aof_enabled === '1') {
    if (info.aof_last_write_status && info.aof_last_write_status !== 'ok') {
      return {
        check: 'persistence',
        status: 'fail',
        message: `append-only file: the last write failed (${info.aof_last_write_status})`,
        mend: 'Free the disk or mend its rights; until then Redis refuses writes.',
      };
    }
    return { check: 'persistence', status: 'ok', message: 'append-only file on' };
  }
  return {
    check: 'persistence',
    status: 'warn',
    message:
      'no append-only file: a restart loses params, holds and the audit log since the last snapshot',
    mend: 'Set appendonly yes, appendfsync everysec (deploy/redis/redis.conf).',
  };
}

export function memory(info: Info): Finding[] {
  const policy = info.maxmemory_policy ?? '?';
  const limit = Number(info.maxmemory ?? 0);
  const evicted = Number(info.evicted_keys ?? 0);
  const findings: Finding[] = [];
  const mend = 'Set maxmemory-policy noeviction or volatile-ttl: params and audit carry no TTL.';
  if (policy.startsWith('allkeys')) {
    findings.push({
      check: 'eviction',
      status: limit > 0 ? 'fail' : 'warn',
      message: `maxmemory-policy ${policy} can evict params and the audit log${limit > 0 ? '' : ' (not yet: maxmemory is 0)'}`,
      mend,
    });
  } else findings.push({ check: 'eviction', status: 'ok', message: `maxmemory-policy ${policy}` });
  if (evicted > 0) {
    findings.push({
      check: 'evicted',
      status: 'warn',
      message: `${evicted} keys were evicted since the server started`,
      mend: policy.startsWith('allkeys')
        ? mend
        : 'Give Redis more memory, or another server to Flyball.',
    });
  }
  return findings;
}

function role(info: Info): Finding {
  if (info.role === 'slave' || info.role === 'replica') {
    return {
      check: 'role',
      status: 'fail',
      message: 'this is a replica: nothing can be written',
      mend: 'Point FLYBALL_REDIS_URL at the primary.',
    };
  }
  return { check: 'role', status: 'ok', message: info.role === 'master' ? 'primary' : 'writable' };
}

async function clockSkew(redis: Redis): Promise<Finding> {
  const before = Date.now();
  const [seconds, micros] = await redis.time();
  const local = (before + Date.now()) / 2;
  const skewMs = Number(seconds) * 1000 + Number(micros) / 1000 - local;
  return skewFinding(skewMs);
}

export function skewFinding(skewMs: number): Finding {
  const abs = Math.abs(skewMs);
  const message = `Redis's clock is ${span(abs)} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (abs < SKEW_WARN_MS) return { check: 'clock', status: 'ok', message };
  return {
    check: 'clock',
    status: abs < SKEW_FAIL_MS ? 'warn' : 'fail',
    message,
    mend: 'Run NTP (chrony, systemd-timesyncd) on both machines.',
  };
}

async function scriptsLoad(redis: Redis): Promise<Finding> {
  const broken: string[] = [];
  for (const { name, lua } of SCRIPTS) {
    try {
      await redis.script('LOAD', lua);
    } catch (error) {
      const text = (error as Error).message;
      if (/^NOPERM/.test(text)) {
        return {
          check: 'scripts',
          status: 'skipped',
          message:
            'SCRIPT LOAD is not allowed to this user; scripts then travel with their first call',
        };
      }
      broken.push(`${name}: ${text}`);
    }
  }
  if (broken.length === 0) {
    return {
      check: 'scripts',
      status: 'ok',
      message: `${SCRIPTS.length} scripts load`,
    };
  }
  return {
    check: 'scripts',
    status: 'fail',
    message: `scripts do not load: ${broken.join('; ')}`,
    mend: 'Use Redis ≥ 7.0 with scripting allowed (+eval +evalsha), and this version of flyball.',
  };
}

/** Asks the server what this user may do, on keys of a limiter that does not exist; writes nothing. */
async function rights(redis: Redis, prefix: string | undefined): Promise<Finding> {
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
