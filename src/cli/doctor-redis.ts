/** What `doctor` asks of Redis: version, persistence, memory policy, rights, scripts, clock. Each answer names its mend. Stage: cli. */
import { systemClock } from '../clock.js';
import { masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import * as generated from '../redis/scripts.gen.js';
import { apart, CLOCK_MEND, measureSkew, type Skew, skewVerdict } from '../sense/skew.js';
import { configSet, type Finding, redisCli } from './doctor-finding.js';
import { latency } from './doctor-latency.js';
import { type Config, type Info, memory, persistence } from './doctor-persistence.js';
import { rights } from './doctor-rights.js';

/** All there are: one that is missing on the server is found by who needs it first. */
const SCRIPTS = Object.values(generated).filter((one) => typeof one === 'object');
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
  return [...findings, ...(await rights(redis, prefix)), ...(await latency(redis, prefix))];
}

async function checkServer(redis: Server): Promise<Finding[]> {
  const findings: Finding[] = [];
  const info = await readInfo(redis, findings);
  if (info) {
    const set = (setting: string) => configSet(redis, setting);
    const config = await readConfig(redis);
    findings.push(
      version(info),
      ...persistence(info, config, set),
      ...memory(info, set),
      role(info),
    );
  }
  findings.push(await clockSkew(redis), await scriptsLoad(redis));
  return findings;
}

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
      command: redisCli(redis, `ACL SETUSER ${redis.options.username ?? '<user>'} +info`),
    });
    return null;
  }
}

/** A user that may not ask for settings is told what INFO tells. */
async function readConfig(redis: Server): Promise<Config> {
  try {
    const reply: unknown = await redis.config('GET', 'appendfsync', 'save');
    // RESP3 answers with a map, RESP2 with a list.
    if (!Array.isArray(reply)) return reply as Config;
    return Object.fromEntries(
      reply.flatMap((name, i) => (i % 2 === 0 ? [[String(name), String(reply[i + 1])]] : [])),
    );
  } catch {
    return {};
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
