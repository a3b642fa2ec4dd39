/** What a restart of Redis would lose, and what full memory would throw away; for `doctor`. Pure. Stage: cli. */
import { EVICTION_MEND, EVICTS, evictionRisk } from '../redis/eviction.js';
import type { Finding } from './doctor-finding.js';

/** INFO by field. */
export type Info = Readonly<Record<string, string>>;

/** CONFIG GET of the few settings that INFO does not tell; a setting that is refused is not there. */
export type Config = Readonly<Partial<Record<'appendfsync' | 'save', string>>>;

/** A command that sets something on the server in question. */
export type Mend = (setting: string) => string;

export function persistence(info: Info, config: Config, set: Mend): Finding[] {
  return [logOf(info, config, set), ...snapshots(info)];
}

function logOf(info: Info, { appendfsync, save }: Config, set: Mend): Finding {
  const check = 'persistence';
  if (info.aof_enabled !== '1') {
    const some = save ? `; snapshots are on (save ${save})` : '';
    return {
      ...{ check, status: 'warn' },
      message: `no append-only file: a restart loses params, holds and the audit log since the last snapshot${some}`,
      mend: 'Set appendonly yes, appendfsync everysec (deploy/redis/redis.conf).',
      command: set('appendonly yes'),
    };
  }
  if (info.aof_last_write_status && info.aof_last_write_status !== 'ok') {
    return {
      ...{ check, status: 'fail' },
      message: `append-only file: the last write failed (${info.aof_last_write_status})`,
      mend: 'Free the disk or mend its rights; until then Redis refuses writes.',
    };
  }
  if (appendfsync === 'no') {
    return {
      ...{ check, status: 'warn' },
      message:
        'append-only file on, but appendfsync no: a crash of the machine loses what the system had not written, often 30 s',
      mend: 'Set appendfsync everysec.',
      command: set('appendfsync everysec'),
    };
  }
  if (info.aof_last_bgrewrite_status && info.aof_last_bgrewrite_status !== 'ok') {
    return {
      ...{ check, status: 'warn' },
      message: 'append-only file: its last rewrite failed, so it only grows',
      mend: "Look at the server's log: most often the disk or its memory is full.",
    };
  }
  const sync = appendfsync === undefined ? '' : `, fsync ${appendfsync}`;
  return { check, status: 'ok', message: `append-only file on${sync}` };
}

function snapshots(info: Info): Finding[] {
  if (info.rdb_last_bgsave_status === undefined || info.rdb_last_bgsave_status === 'ok') return [];
  return [
    {
      ...{ check: 'snapshot', status: 'fail' },
      message: 'the last snapshot failed: by its default Redis then refuses writes',
      mend: "Look at the server's log: most often the disk is full, or vm.overcommit_memory is 0.",
    },
  ];
}

export function memory(info: Info, set: Mend): Finding[] {
  const policy = info.maxmemory_policy ?? '?';
  const limit = Number(info.maxmemory ?? 0);
  const evicted = Number(info.evicted_keys ?? 0);
  const findings: Finding[] = [];
  const risk = evictionRisk(policy);
  const command = set('maxmemory-policy noeviction');
  if (risk !== 'none') {
    findings.push({
      check: 'eviction',
      status: limit > 0 && risk === 'all' ? 'fail' : 'warn',
      message: `maxmemory-policy ${policy} can evict ${EVICTS[risk]}${limit > 0 ? '' : ' (not yet: maxmemory is 0)'}`,
      ...{ mend: EVICTION_MEND, command },
    });
  } else findings.push({ check: 'eviction', status: 'ok', message: `maxmemory-policy ${policy}` });
  if (evicted > 0) {
    findings.push({
      check: 'evicted',
      status: 'warn',
      message: `${evicted} keys were evicted since the server started`,
      ...(risk === 'none'
        ? { mend: 'Give Redis more memory, or another server to Flyball.' }
        : { mend: EVICTION_MEND, command }),
    });
  }
  const used = Number(info.used_memory ?? 0);
  if (limit > 0 && used > 0.9 * limit) {
    findings.push({
      check: 'memory',
      status: 'warn',
      message: `${Math.round((100 * used) / limit)} % of maxmemory is used; at 100 % writes are refused or keys evicted`,
      mend: 'Give Redis more memory, or another server to Flyball.',
    });
  }
  return findings;
}
