import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, test } from 'vitest';
import { startPostgres } from '../../src/demo/postgres.js';

test('a private PostgreSQL starts, answers, and leaves nothing behind', async () => {
  const server = await startPostgres({ settings: { max_connections: 17 } });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query('SHOW max_connections');
  expect(rows[0].max_connections).toBe('17');
  await client.end();
  expect(statSync(join(server.dir, 'data')).mode & 0o077).toBe(0);
  await server.stop();
  await server.stop();
  expect(existsSync(server.dir)).toBe(false);
  expect(() => process.kill(server.pid, 0)).toThrow(/ESRCH/);
});

test('a parent folder its user cannot reach is passed over for the temporary folder', async () => {
  const closed = mkdtempSync(join(tmpdir(), 'flyball-closed-'));
  const server = await startPostgres({ dir: closed });
  try {
    // As an ordinary user the folder is one's own, and is used.
    expect(server.dir.startsWith(closed)).toBe(process.getuid?.() !== 0);
  } finally {
    await server.stop();
    rmSync(closed, { recursive: true });
  }
});

test('a starter that is killed takes its PostgreSQL and the folder with it', async () => {
  const source = fileURLToPath(new URL('../../src/demo/postgres.ts', import.meta.url));
  const script = `
    import { createJiti } from 'jiti';
    const { startPostgres } = await createJiti(process.cwd()).import(${JSON.stringify(source)});
    const server = await startPostgres();
    console.log(JSON.stringify({ pid: server.pid, dir: server.dir }));
    process.kill(process.pid, 'SIGKILL');`;
  let out = '';
  try {
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  } catch (error) {
    out = (error as { stdout: string }).stdout;
  }
  const { pid, dir } = JSON.parse(out) as { pid: number; dir: string };
  await expect.poll(() => existsSync(dir), { timeout: 20_000 }).toBe(false);
  expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
});
