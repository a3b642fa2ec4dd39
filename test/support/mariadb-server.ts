/** A private MariaDB for tests: real process, own port and folder, without its own users' passwords; ended by its pid. */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverAccount } from '../../src/demo/postgres-binaries.js';
import { end, until } from './prometheus-server.js';
import { freePort } from './redis-server.js';

const MARIADBD = process.env.SUITE_MARIADB ?? 'mariadbd';

export interface TestMariadb {
  readonly port: number;
  /** As a user who may do all; the database is `test`. */
  readonly url: string;
  /** The same as another user. */
  as(user: string, password: string): string;
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startMariadb(args: string[] = []): Promise<TestMariadb> {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-mariadb-'));
  const account = serverAccount();
  if (account) chownSync(dir, account.uid, account.gid);
  chmodSync(dir, 0o700);
  const data = join(dir, 'data');
  const small = '--innodb-buffer-pool-size=16M';
  const common = ['--no-defaults', `--datadir=${data}`, `--tmpdir=${dir}`, small];
  mkdirSync(data);
  if (account) chownSync(data, account.uid, account.gid);
  const env = { PATH: `${process.env.PATH}:/usr/sbin`, HOME: dir };
  const made = spawnSync(MARIADBD, [...common, '--bootstrap', '--skip-networking'], {
    ...{ ...account, cwd: dir, env, encoding: 'utf8', input: systemTables() },
  });
  if (made.status !== 0) throw new Error(`mariadbd --bootstrap: ${made.error ?? made.stderr}`);
  const port = await freePort();
  const child = spawn(
    MARIADBD,
    [
      ...common,
      `--port=${port}`,
      `--socket=${join(dir, 'socket')}`,
      '--bind-address=127.0.0.1',
      '--innodb-flush-log-at-trx-commit=0',
      '--skip-name-resolve',
      ...args,
    ],
    {
      ...account,
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
      env,
    },
  );
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-3000);
  });
  await until(
    child,
    () => said,
    () =>
      new Promise((ok) => {
        const socket = connect(port, '127.0.0.1');
        socket.once('data', () => ok(true));
        socket.once('error', () => ok(false));
        socket.once('data', () => socket.destroy());
      }),
  );
  return {
    port,
    url: `mysql://root@127.0.0.1:${port}/mysql`,
    as: (user, password) => `mysql://${user}:${password}@127.0.0.1:${port}/`,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** What mariadb-install-db does, which looks for programs of the client's package. `root` may do all, from loopback. */
function systemTables(): string {
  const share = ['/usr/share/mysql', '/usr/share/mariadb'].find((path) =>
    existsSync(join(path, 'mysql_system_tables.sql')),
  );
  if (share === undefined) throw new Error('MariaDB has no mysql_system_tables.sql in /usr/share');
  const read = (name: string) => readFileSync(join(share, `${name}.sql`), 'utf8');
  return [
    'CREATE DATABASE mysql;',
    'USE mysql;',
    read('mysql_system_tables'),
    read('mysql_performance_tables'),
    `INSERT INTO global_priv VALUES ('127.0.0.1', 'root', '{"access":18446744073709551615}');`,
  ].join('\n');
}
