/** How long Redis takes to answer this machine, by a short series of round trips, and which of its commands were slow; for `doctor`. Stage: cli. */
import { performance } from 'node:perf_hooks';
import { limiterKeys } from '../redis/keys.js';
import { isCluster, masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import { percentile } from '../tune/usable.js';
import { type Finding, redisCli } from './doctor-finding.js';
import { clean, number } from './text.js';

/** A take waits 50 ms at most by default: at 5 ms a tenth of it is gone before anything was decided. */
const SLOW_MS = 5;
const ROUND_TRIPS = 200;
/** A server that is far away is not asked for ever. */
const MOST_MS = 2000;
const SLOW_LATELY_S = 3600;
const SLOW_COMMAND_US = 10_000;

/** Reads what a take reads, and writes nothing. */
const TAKE_LIKE = `#!lua flags=no-writes
redis.call('HMGET', KEYS[1], 'rate', 'capacity', 'inFlightMax', 'state', 'revision')
redis.call('GET', KEYS[2])
return redis.call('TIME')`;

export async function latency(redis: RedisClient, prefix: string | undefined): Promise<Finding[]> {
  const keys = limiterKeys({ name: 'doctor', prefix });
  const servers = masters(redis);
  const [first] = servers;
  const pings = await Promise.all(servers.map((server) => timesOf(() => server.ping())));
  const takes = await timesOf(() => redis.eval(TAKE_LIKE, 2, keys.params, keys.bucket));
  const all = pings.map((times, i) => ({ server: servers[i]!, p99: at(times, 0.99) }));
  const worst = all.reduce((a, b) => (b.p99 > a.p99 ? b : a));
  const ping = pings.flat();
  const message = `PING p50 ${ms(at(ping, 0.5))}, p99 ${ms(worst.p99)}; a script like a take p50 ${ms(at(takes, 0.5))}, p99 ${ms(at(takes, 0.99))}`;
  const findings: Finding[] = [];
  if (Math.max(worst.p99, at(takes, 0.99)) <= SLOW_MS) {
    findings.push({ check: 'latency', status: 'ok', message });
  } else {
    findings.push({
      ...{ check: 'latency', status: 'warn' },
      message: `${message}: more than ${SLOW_MS} ms`,
      mend: `${await serverSays(worst.server)} See also a busy machine here, a far zone, or a disk that Redis waits for.`,
      command: redisCli(worst.server, '--latency-history -i 5'),
    });
  }
  if (first !== undefined && !isCluster(redis)) findings.push(...(await slowCommands(first)));
  return findings;
}

type Server = ReturnType<typeof masters>[number];

async function timesOf(call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const began = performance.now();
  // The first call of each kind also opens a connection or sends the script's text.
  await call();
  for (let i = 0; i < ROUND_TRIPS && performance.now() - began < MOST_MS; i++) {
    const from = performance.now();
    await call();
    times.push(performance.now() - from);
  }
  return times;
}

function at(times: readonly number[], q: number): number {
  return percentile(times, q) ?? 0;
}

function ms(value: number): string {
  return `${number(Number(value.toPrecision(2)))} ms`;
}

/** What the server itself measured of scripts: without the way there, so that the two can be told apart. */
async function serverSays(server: Server): Promise<string> {
  const text = await server.info('latencystats').catch(() => '');
  const p99 = /^latency_percentiles_usec_evalsha:.*p99=([\d.]+)/m.exec(text)?.[1];
  if (p99 === undefined) return 'Look at what the server was doing.';
  const own = Number(p99) / 1000;
  const where = own > SLOW_MS ? 'the time goes by in the server' : 'the time goes by on the way';
  return `The server itself took ${ms(own)} for scripts (p99): ${where}.`;
}

/** Names and times only: arguments may be anybody's data. */
async function slowCommands(server: Server): Promise<Finding[]> {
  let log: [number, number, number, string[]][];
  let now: number;
  try {
    log = (await server.call('SLOWLOG', 'GET', '64')) as typeof log;
    now = Number((await server.time())[0]);
  } catch {
    // An administrator's command: nothing is said to others.
    return [];
  }
  const slow = new Map<string, number>();
  for (const [, atS, us, [name = '?']] of log) {
    if (now - Number(atS) > SLOW_LATELY_S || Number(us) < SLOW_COMMAND_US) continue;
    const word = clean(String(name).toUpperCase());
    slow.set(word, Math.max(slow.get(word) ?? 0, Number(us)));
  }
  if (slow.size === 0) return [];
  const worst = [...slow].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return [
    {
      ...{ check: 'slow commands', status: 'warn' },
      message: `of the last hour, at worst: ${worst.map(([name, us]) => `${name} ${ms(us / 1000)}`).join(', ')}; all others waited meanwhile`,
      mend: 'Find who sends them, or give Flyball a server of its own.',
      command: redisCli(server, 'SLOWLOG GET 10'),
    },
  ];
}
