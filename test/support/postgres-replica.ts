/** A replica of a private PostgreSQL for tests: a copy of its folder that follows it; ended by its pid. */
import { spawn } from 'node:child_process';
import { chownSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { RunningPostgres } from '../../src/demo/postgres.js';
import { serverAccount, serverBinaries } from '../../src/demo/postgres-binaries.js';
import { end, until } from './prometheus-server.js';
import { freePort } from './redis-server.js';

export interface TestReplica {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startReplica(primary: RunningPostgres): Promise<TestReplica> {
  const account = serverAccount();
  const dir = mkdtempSync(join(tmpdir(), 'flyball-replica-'));
  const data = join(dir, 'data');
  await copyWhileItRuns(primary, data);
  const own = (path: string) => account && chownSync(path, account.uid, account.gid);
  own(dir);
  own(data);
  for (const path of readdirSync(data, { recursive: true, encoding: 'utf8' }))
    own(join(data, path));
  const port = await freePort();
  const settings = {
    ...{ port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' },
    // It must allow at least as many as its primary.
    max_connections: 100,
    shared_buffers: '32MB',
    primary_conninfo: primary.url,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(serverBinaries(account, dir), 'postgres'), ['-D', data, ...flags], {
    ...{ ...account, cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] as const },
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-3000);
  });
  const url = primary.url.replace(`:${primary.port}/`, `:${port}/`);
  await until(
    child,
    () => said,
    async () => {
      const client = new pg.Client({ connectionString: url });
      client.on('error', () => {});
      await client.connect();
      await client.end();
      return true;
    },
  );
  return {
    url,
    async stop() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** What pg_basebackup does, which the npm binaries leave out. */
async function copyWhileItRuns(primary: RunningPostgres, data: string): Promise<void> {
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  await client.query("SELECT pg_backup_start('replica', true)");
  cpSync(join(primary.dir, 'data'), data, { recursive: true });
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
  await client.end();
  for (const name of ['postmaster.pid', 'postmaster.opts'])
    rmSync(join(data, name), { force: true });
  writeFileSync(join(data, 'backup_label'), rows[0].labelfile);
  writeFileSync(join(data, 'standby.signal'), '');
}
