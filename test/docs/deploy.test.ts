/** What ships to be deployed: Dockerfile, compose and systemd unit, checked as far as it goes without Docker. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT, read } from '../support/source-tree.js';

/** The instructions of one stage, continued lines joined. */
function stages(): string[][][] {
  const lines = read('Dockerfile')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line && !line.startsWith('#'));
  const all: string[][][] = [];
  for (const line of lines) {
    const [, name, rest] = /^\s*(\w+)\s+(.*)$/.exec(line)!;
    if (name === 'FROM') all.push([]);
    all.at(-1)!.push([name!, rest!]);
  }
  return all;
}
const of = (stage: string[][], name: string) =>
  stage.filter(([given]) => given === name).map(([, rest]) => rest!);

describe('Dockerfile', () => {
  const [build, final] = stages() as [string[][], string[][]];

  test('the last stage runs as a number that is not root, in exec form, with a health check by node', () => {
    expect(stages()).toHaveLength(2);
    expect(of(final, 'USER')).toEqual(['65532:65532']);
    expect(JSON.parse(of(final, 'ENTRYPOINT')[0]!)).toEqual(['node', 'dist/cli/main.js']);
    expect(JSON.parse(of(final, 'CMD')[0]!)).toEqual(['run']);
    expect(of(final, 'HEALTHCHECK')[0]).toMatch(/--interval=\S+ .*CMD \["node"/);
    expect(of(final, 'RUN')).toEqual([]);
    expect(of(final, 'LABEL')[0]).toMatch(/org\.opencontainers\.image\.licenses="Apache-2\.0"/);
  });

  test('what it copies is enough to build, and passes .dockerignore', () => {
    const copy = mkdtempSync(join(tmpdir(), 'flyball-image-'));
    try {
      const allowed = read('.dockerignore').split('\n');
      for (const line of of(build, 'COPY')) {
        const from = line.split(' ').slice(0, -1);
        for (const name of from) {
          expect(allowed).toContain(`!${name}`);
          cpSync(join(ROOT, name), join(copy, name), { recursive: true });
        }
      }
      symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
      const run = spawnSync('npm', ['run', '--silent', 'build'], { cwd: copy, encoding: 'utf8' });
      expect(run.stderr).toBe('');
      const image = join(copy, 'image');
      mkdirSync(image);
      for (const name of ['node_modules', 'dist', 'package.json', 'LICENSE']) {
        const from = name === 'LICENSE' ? join(ROOT, name) : join(copy, name);
        cpSync(from, join(image, name), { recursive: true, verbatimSymlinks: true });
      }
      const entry: string[] = JSON.parse(of(final, 'ENTRYPOINT')[0]!);
      const version = spawnSync(process.execPath, [...entry.slice(1), '--version'], {
        cwd: image,
        encoding: 'utf8',
      });
      expect(version.stdout.trim()).toBe(JSON.parse(read('package.json')).version);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }, 120_000);

  test.each([
    [200, 0],
    [503, 1],
  ])('the health check on an answer of %i exits with %i', async (status, exit) => {
    const server = createServer((_req, res) => res.writeHead(status).end());
    await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
    try {
      const { port } = server.address() as AddressInfo;
      expect(await health(String(port))).toBe(exit);
    } finally {
      server.close();
    }
  });

  test('the health check with nobody there exits with 1', async () => {
    expect(await health('1')).toBe(1);
  });

  async function health(port: string): Promise<number | null> {
    const { spawn } = await import('node:child_process');
    const [, json] = /CMD (\[.*\])$/.exec(of(final, 'HEALTHCHECK')[0]!)!;
    const [, ...args]: string[] = JSON.parse(json!);
    const child = spawn(process.execPath, args, { env: { FLYBALL_HTTP_PORT: port } });
    return new Promise((ok) => child.once('exit', ok));
  }
});

describe('compose.yml', () => {
  const compose = parse(read('deploy/compose.yml'));

  test('Redis and two daemons, both read-only and without rights; secrets by file', () => {
    const { redis, flyball } = compose.services;
    for (const service of [redis, flyball]) {
      expect(service.read_only).toBe(true);
      expect(service.cap_drop).toEqual(['ALL']);
      expect(service.security_opt).toContain('no-new-privileges:true');
      for (const secret of service.secrets) expect(compose.secrets).toHaveProperty(secret);
    }
    expect(flyball.deploy.replicas).toBe(2);
    expect(flyball.environment.FLYBALL_REDIS_PASSWORD_FILE).toBe(
      `/run/secrets/${flyball.secrets[0]}`,
    );
    expect(flyball.environment.FLYBALL_REDIS_URL).toMatch(/^redis:\/\/flyball-daemon@redis:6379$/);
  });

  test('Redis is started by the script and with the settings that lie beside it', () => {
    const { redis } = compose.services;
    expect(redis.command.slice(0, 2)).toEqual(['sh', '/etc/flyball/start.sh']);
    expect(redis.volumes).toContain('./redis:/etc/flyball:ro');
    for (const name of ['start.sh', 'redis.conf', 'users.acl']) {
      expect(existsSync(join(ROOT, 'deploy/redis', name))).toBe(true);
    }
  });
});

describe('redis.conf', () => {
  const conf = read('deploy/redis/redis.conf');

  test('keeps what must be kept', () => {
    for (const line of [
      'appendonly yes',
      'appendfsync everysec',
      'auto-aof-rewrite-percentage 100',
      'auto-aof-rewrite-min-size 64mb',
      'maxmemory-policy noeviction',
    ]) {
      expect(conf.split('\n')).toContain(line);
    }
    expect(conf).toMatch(/^maxmemory \d+mb$/m);
  });

  test('each line has its reason', () => {
    const lines = conf.split('\n').filter(Boolean);
    const bare = lines.filter((line, i) => {
      if (line.startsWith('#')) return false;
      const [before, own] = [lines[i - 1] ?? '', line.split(' ')[0]!];
      // Two settings of one family may share a reason.
      return !before.startsWith('#') && !before.startsWith(own.split('-').slice(0, 2).join('-'));
    });
    expect(bare).toEqual([]);
  });
});

test('the systemd unit keeps a wrong setting from being tried again, and has no more rights than it needs', () => {
  const unit = read('deploy/systemd/flyball.service');
  for (const line of [
    'Type=exec',
    'DynamicUser=yes',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
  ]) {
    expect(unit.split('\n')).toContain(line);
  }
  expect(unit).toMatch(/^RestartPreventExitStatus=.*\b78\b/m);
});

test('the package ships what the embedded Redis and the CLI read', () => {
  const pack = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const files: string[] = JSON.parse(pack.stdout)[0].files.map(
    (file: { path: string }) => file.path,
  );
  for (const path of [
    'dist/index.js',
    'dist/index.d.ts',
    'dist/cli/main.js',
    'dist/redis/embedded.js',
    'deploy/redis/redis.conf',
    'deploy/redis/users.acl',
    'README.md',
    'LICENSE',
  ]) {
    expect(files).toContain(path);
  }
  expect(files.filter((path) => /^(src|test|scripts|\.flyball|node_modules)\//.test(path))).toEqual(
    [],
  );
});
