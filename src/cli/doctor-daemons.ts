/** What `doctor` asks of the autopilots: who lives, which version, how fresh their ticks are, clocks, and what waits to be applied. Stage: cli. */
import { readParams } from '../actuate/actuator.js';
import { fleetKeys, type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { LimiterStatus } from '../report/status.js';
import { apart, CLOCK_MEND, SKEW_WARN_MS } from '../sense/skew.js';
import { VERSION } from '../version.js';
import { daemonOf } from '../view/fleet.js';
import { parseStatus } from '../view/status-facts.js';
import type { Finding } from './doctor-finding.js';
import { listLimiters, type Session } from './session.js';
import { clean, span } from './text.js';

/** A daemon speaks four times a lease (5 s by default); who is silent for longer is on its way out. */
const SILENT_MS = 15_000;
const LATE_TICKS = 10;

export async function checkDaemons(session: Session): Promise<Finding[]> {
  const [limiters, registry, time] = await Promise.all([
    listLimiters(session),
    session.redis.hgetall(fleetKeys(session.prefix).daemons),
    session.redis.time(),
  ]);
  const nowMs = Number(time[0]) * 1000 + Number(time[1]) / 1000;
  const each = await Promise.all(
    limiters.map((address) => limiterFindings(session, address, nowMs)),
  );
  const unwatched = each.flatMap(({ watched, name }) => (watched === false ? [name] : []));
  const watched = each.some((one) => one.watched === true);
  return [
    ...each.flatMap(({ findings }) => findings),
    ...watchFindings(unwatched, watched),
    ...registered(registry, nowMs),
  ];
}

function watchFindings(unwatched: readonly string[], watched: boolean): Finding[] {
  if (unwatched.length > 0) {
    return [
      {
        ...{ check: 'daemon', status: 'warn' },
        message: `no daemon watches ${unwatched.join(', ')}: the limits go to their safe values`,
        mend: 'Start flyball run beside the services.',
        command: 'flyball run policies/',
      },
    ];
  }
  return watched ? [{ check: 'daemon', status: 'ok', message: 'every limiter is watched' }] : [];
}

interface LimiterFindings {
  name: string;
  /** undefined: it has no params, or they cannot be read. */
  watched?: boolean;
  findings: Finding[];
}

async function limiterFindings(
  session: Session,
  address: LimiterAddress,
  nowMs: number,
): Promise<LimiterFindings> {
  const name = clean(address.name);
  const check = `limiter ${name}`;
  try {
    const { params } = await readParams(session.redis, address);
    if (params === null) {
      const message =
        'registered, but its params are missing: services use the numbers in their code';
      const mend = 'Start flyball run with its policy.';
      return {
        name,
        findings: [{ check, status: 'fail', message, mend, command: 'flyball run policies/' }],
      };
    }
    const watched = params.validUntil > nowMs;
    const status = await readStatus(session, address);
    return { name, watched, findings: status === null ? [] : told(name, status, nowMs, watched) };
  } catch (error) {
    const message = clean((error as Error).message);
    const mend = `Look at it: something else than Flyball has written ${limiterKeys(address).params}, or this user may not read it.`;
    return { name, findings: [{ check, status: 'fail', message, mend }] };
  }
}

async function readStatus(
  { redis }: Session,
  address: LimiterAddress,
): Promise<Partial<LimiterStatus> | null> {
  // A service's user may not read it; then the daemon's own word is not known.
  return parseStatus(await redis.get(limiterKeys(address).status).catch(() => null));
}

/** What the daemon wrote at its last tick, where it is out of the ordinary. */
function told(
  name: string,
  status: Partial<LimiterStatus>,
  nowMs: number,
  watched: boolean,
): Finding[] {
  const findings: Finding[] = [];
  const warn = (check: string, message: string, mend: string, command?: string) =>
    findings.push({ check, status: 'warn', message, mend, ...(command ? { command } : {}) });
  const { atMs = nowMs, tickMs = 1000, clocks, file, faults = [] } = status;
  const ageMs = nowMs - atMs;
  if (watched && ageMs > LATE_TICKS * tickMs) {
    const message = `its daemon's last tick was ${span(ageMs)} ago`;
    warn(
      `ticks ${name}`,
      message,
      'Look at the log and the load of the daemon.',
      `flyball status ${name}`,
    );
  }
  const { redisMs, servicesMs } = { redisMs: 0, servicesMs: 0, ...clocks };
  if (Math.abs(redisMs ?? 0) > SKEW_WARN_MS) {
    warn(`clocks ${name}`, `Redis's clock is ${apart(redisMs!, "the daemon's")}`, CLOCK_MEND);
  }
  if (Math.abs(servicesMs) > SKEW_WARN_MS) {
    warn(`clocks ${name}`, `Redis's clock is ${apart(servicesMs, "a service's")}`, CLOCK_MEND);
  }
  if (file === 'pending') {
    warn(
      `policy ${name}`,
      'a changed policy file waits to be applied',
      'Look at it, then apply it.',
      'flyball plan',
    );
  } else if (file === 'drift') {
    const message = "the daemon's policy file is not what is adopted";
    warn(
      `policy ${name}`,
      message,
      'Look at what differs, then apply it or put the file right.',
      'flyball plan',
    );
  }
  for (const fault of faults) {
    warn(
      `policy ${name}`,
      clean(fault),
      'Mend the file; the adopted policy stays in force.',
      'flyball check policies/',
    );
  }
  return findings;
}

function registered(registry: Record<string, string>, nowMs: number): Finding[] {
  const daemons = Object.entries(registry).flatMap(([owner, text]) => daemonOf(owner, text, nowMs));
  if (daemons.length === 0) return [];
  const findings: Finding[] = [];
  const living = daemons.filter(({ silentMs }) => silentMs <= SILENT_MS);
  for (const { owner, silentMs } of daemons) {
    if (silentMs <= SILENT_MS) continue;
    findings.push({
      ...{ check: 'daemons', status: 'warn' },
      message: `${nameOf(owner)} was last heard ${span(silentMs)} ago, and has not said that it leaves`,
      mend: 'Look whether it still runs; it is forgotten after a minute.',
    });
  }
  const words = living.map(({ owner, version, leads }) => {
    const inVersion = version === null ? '' : `${clean(version)}, `;
    return `${nameOf(owner)} (${inVersion}leads ${leads})`;
  });
  const versions = living.flatMap(({ version }) => version ?? []);
  const message = `${living.length} ${living.length === 1 ? 'lives' : 'live'}: ${words.join(', ')}`;
  if (living.length > 0 && versions.some((version) => version !== VERSION)) {
    findings.push({
      ...{ check: 'daemons', status: 'warn' },
      message: `${message}; this command is ${VERSION}`,
      mend: 'Bring all to one version: a law of another version may decide otherwise.',
      command: 'npm install -g flyball@latest',
    });
  } else if (living.length > 0) findings.push({ check: 'daemons', status: 'ok', message });
  return findings;
}

/** `east:812:9f31c0` → `east`. */
function nameOf(owner: string): string {
  return clean(owner.split(':')[0]!);
}
