/** Pools of connections against what the database takes: what is open now, and what all instances may open together; for `doctor`. Stage: cli. */
import { systemClock } from '../clock.js';
import { createLog } from '../log.js';
import type { Policy } from '../policy/schema.js';
import { createSourcePool } from '../sense/source-pool.js';
import { isSourced, type SourcedSignal } from '../sense/sources.js';
import type { Finding } from './doctor-finding.js';
import { clean, number } from './text.js';

type DatabaseSignal = Extract<SourcedSignal, { source: 'postgres' | 'mysql' }>;

interface Database {
  signal: DatabaseSignal;
  /** Of the policies that read it: what they say all instances may open. */
  pools: { limiter: string; connections: number; instances: number | undefined }[];
}

/** Backups, migrations and people need some too. */
const FULL = 0.8;

export async function checkPools(
  policies: readonly Policy[],
  env: NodeJS.ProcessEnv,
): Promise<Finding[]> {
  const databases = [...databasesOf(policies)];
  if (databases.length === 0) return [];
  const log = createLog({ level: 'silent', fd: 2 });
  const pool = createSourcePool({ env, log, clock: systemClock, everyMs: 0 });
  const signals = databases.map(([name, { signal }]) => [name, connectionsOf(signal)] as const);
  const opened = pool.open(Object.fromEntries(signals));
  try {
    await opened.ask();
    const seen = new Map(opened.newest());
    return databases.flatMap(([name, { pools }]) => {
      const found = seen.get(name);
      // A database that does not answer is told by its signals.
      if (found?.kind !== 'value') return [];
      const [, used, most] = /^(\d+) of (\d+)/.exec(found.detail ?? '') ?? [];
      if (used === undefined) return [];
      return [poolFinding(name, Number(used), Number(most), pools)];
    });
  } finally {
    await opened.close();
  }
}

function databasesOf(policies: readonly Policy[]): Map<string, Database> {
  const found = new Map<string, Database>();
  for (const { limiter, signals, tune } of policies) {
    const own = new Map<string, DatabaseSignal>();
    for (const signal of Object.values(signals)) {
      if (!isSourced(signal)) continue;
      if (signal.source === 'postgres' || signal.source === 'mysql')
        own.set(nameOf(signal), signal);
    }
    for (const [name, signal] of own) {
      const database = found.get(name) ?? { signal, pools: [] };
      found.set(name, database);
      if (tune?.connections === undefined) continue;
      const { connections, instances } = tune;
      database.pools.push({ limiter: limiter.name, connections, instances });
    }
  }
  return found;
}

/** `postgres DATABASE_URL`: a variable is a name that tells no secret, an address is shown by its host. */
function nameOf({ source, url }: DatabaseSignal): string {
  if (typeof url !== 'string') return `${source} ${url.env}`;
  return `${source} ${URL.canParse(url) ? new URL(url).host : '?'}`;
}

function connectionsOf({ source, url, deadlineMs }: DatabaseSignal): DatabaseSignal {
  return { source, stat: 'connectionsRatio', url, deadlineMs } as DatabaseSignal;
}

function poolFinding(name: string, used: number, most: number, pools: Database['pools']): Finding {
  const check = `pools ${clean(name)}`;
  const sum = pools.reduce((total, { connections }) => total + connections, 0);
  const each = pools.map(({ limiter, connections }) => `${limiter} ${connections}`).join(', ');
  const planned = sum === 0 ? '' : `; policies say ${sum} (${each})`;
  const message = `${used} of ${most} connections are open${planned}`;
  const room = Math.floor(most * FULL);
  if (sum > most) {
    const instances = pools.reduce((total, one) => total + (one.instances ?? 0), 0);
    const size =
      instances > 0
        ? `: ${number(Math.floor(room / instances))} for each of ${instances} instances`
        : '';
    return {
      ...{ check, status: 'fail' },
      message: `${message}: together they open more than the database takes`,
      mend: `Make the pools smaller, ${room} in all${size}, say so in tune.connections, or raise max_connections.`,
    };
  }
  if (used > room) {
    return {
      ...{ check, status: 'warn' },
      message: `${message}: few are left`,
      mend: 'Make the pools smaller, put a pooler in between, or raise max_connections.',
    };
  }
  return { check, status: 'ok', message };
}
