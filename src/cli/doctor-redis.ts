/** What `doctor` asks of Redis: version, persistence, memory policy, rights, scripts, clock. Each answer names its mend. Stage: cli. */
import { systemClock } from '../clock.js';
import { EVICTION_MEND, EVICTS, evictionRisk } from '../redis/eviction.js';
import { masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import {
  actuateScript,
  heartbeatScript,
  inflightScript,
  leaseScript,
  noteScript,
  takeScript,
} from '../redis/scripts.gen.js';
import { apart, CLOCK_MEND, measureSkew, type Skew, skewVerdict } from '../sense/skew.js';
import { rights } from './doctor-rights.js';

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

type Server = ReturnType<typeof masters>[number];

/** Each server that takes writes; what all of them answer alike is said once. */
export async function checkRedis(
  redis: RedisClient,
  prefix: string | undefined,
): Promise<Finding[]> {
  const servers = masters(redis);
  const each = await Promise.all(
    servers.map(async (server) => {
      const findings = await checkServer(server);
      if (servers.length === 1) return findings;
      const { host, port } = server.options;
      return findings.map((f) =>
        f.status === 'ok' ? f : { ...f, message: `${host}:${port}: ${f.message}` },
      );
    }),
  );
  const told = new Set<string>();
  const findings = each.flat().filter(({ check, status, message }) => {
    // Clocks differ by a hair on every node: one that is right is enough said.
    const what = status === 'ok' ? `${check} ${check === 'clock' ? '' : message}` : message;
    return !told.has(what) && told.add(what);
  });
  return [...findings, await rights(redis, prefix)];
}

async function checkServer(redis: Server): Promise<Finding[]> {
  const findings: Finding[] = [];
  const info = await readInfo(redis, findings);
  if (info) {
    findings.push(version(info), persistence(info), ...memory(info), role(info));
  }
  findings.push(await clockSkew(redis), await scriptsLoad(redis));
  return findings;
}

type Info = Record<string, string>;

async function readInfo(redis: Server, findings: Finding[]): Promise<Info | null> {
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
  const risk = evictionRisk(policy);
  if (risk !== 'none') {
    findings.push({
      check: 'eviction',
      status: limit > 0 && risk === 'all' ? 'fail' : 'warn',
      message: `maxmemory-policy ${policy} can evict ${EVICTS[risk]}${limit > 0 ? '' : ' (not yet: maxmemory is 0)'}`,
      mend: EVICTION_MEND,
    });
  } else findings.push({ check: 'eviction', status: 'ok', message: `maxmemory-policy ${policy}` });
  if (evicted > 0) {
    findings.push({
      check: 'evicted',
      status: 'warn',
      message: `${evicted} keys were evicted since the server started`,
      mend:
        risk === 'none' ? 'Give Redis more memory, or another server to Flyball.' : EVICTION_MEND,
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

async function clockSkew(redis: Server): Promise<Finding> {
  const skew = await measureSkew(systemClock, async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Number(micros) / 1000;
  });
  return skewFinding(skew);
}

/** Leases, holds and telemetry seconds are Redis's time; people and logs read ours. */
export function skewFinding(skew: Skew): Finding {
  const message = `Redis's clock is ${apart(skew.skewMs, "this machine's")}`;
  const verdict = skewVerdict(skew);
  if (verdict === 'ok') return { check: 'clock', status: 'ok', message };
  if (verdict === 'warn') return { check: 'clock', status: 'warn', message, mend: CLOCK_MEND };
  const refused = `${message}: flyball run refuses to start here`;
  return { check: 'clock', status: 'fail', message: refused, mend: CLOCK_MEND };
}

async function scriptsLoad(redis: Server): Promise<Finding> {
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
