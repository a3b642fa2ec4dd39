/** What `init` finds in a folder and its environment: framework, kind of modules, Redis, database. Shows no password. Stage: cli. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { redactUrl } from '../log.js';
import { resolveRedis } from '../redis/connect.js';
import { composeServices } from './init-compose.js';

export const FRAMEWORKS = ['express', 'fastify', 'hono', 'koa', 'nest', 'http'] as const;
export type Framework = (typeof FRAMEWORKS)[number];

export interface FoundRedis {
  /** As given: may hold a password. Show `shown`. */
  url: string;
  shown: string;
  /** `--redis`, a variable, a compose file, the data folder, or `localhost`. */
  from: string;
  /** The variable to give the daemon and the services, where it is not theirs already. */
  set: string | null;
}

/** Nobody named it: it is where Redis usually is, or where `run` keeps its private one. */
export function isGuess({ from }: Pick<FoundRedis, 'from'>): boolean {
  return from === 'localhost' || from === 'the data folder';
}

export interface FoundDatabase {
  kind: 'postgres' | 'mysql';
  /** Environment variable that holds its address. */
  variable: string;
  from: string;
  /** Its address is known here, so that it can be asked. */
  url: string | null;
}

export interface Surroundings {
  /** A name for the limiter, made of the package's or the folder's. */
  suggested: string;
  framework: Framework;
  /** `package.json` names one; else `http` is a guess. */
  frameworkFrom: string | null;
  modules: 'esm' | 'commonjs';
  /** Packages that `package.json` names. */
  packages: string[];
  /** Where Redis may be, the likeliest first. */
  redis: FoundRedis[];
  database: FoundDatabase | null;
}

/** Nest runs on Express or Fastify, and names them too: it comes first. */
const BY_PACKAGE: readonly [string, Framework][] = [
  ['@nestjs/core', 'nest'],
  ['fastify', 'fastify'],
  ['hono', 'hono'],
  ['koa', 'koa'],
  ['express', 'express'],
];
const COMPOSE = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];
/** Names that are looked at first; then any other. */
const DATABASE_VARIABLES = ['DATABASE_URL', 'POSTGRES_URL', 'PG_URL', 'MYSQL_URL', 'DB_URL'];

/** Reads files and variables only; nothing is connected, and a file that cannot be read is one that is not there. */
export function surroundings(
  folder: string,
  env: NodeJS.ProcessEnv,
  redisUrl?: string,
): Surroundings {
  const manifest = readManifest(folder);
  const packages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  const named = BY_PACKAGE.find(([name]) => packages.includes(name));
  const compose = COMPOSE.filter((file) => existsSync(join(folder, file))).flatMap((file) =>
    composeServices(readFileSync(join(folder, file), 'utf8')).map((one) => ({ ...one, file })),
  );
  const files = ['.env', '.env.local'].map((file) => ({ file, values: dotenv(folder, file) }));
  return {
    suggested: nameFrom(manifest.name ?? '') || nameFrom(basename(folder)) || 'api',
    framework: named?.[1] ?? 'http',
    frameworkFrom: named ? `package.json (${named[0]})` : null,
    modules:
      manifest.type === 'module' || existsSync(join(folder, 'tsconfig.json')) ? 'esm' : 'commonjs',
    packages,
    redis: redisOf(env, files, compose, redisUrl),
    database: databaseOf(env, files, compose),
  };
}

interface Manifest {
  name?: string;
  type?: string;
  dependencies?: object;
  devDependencies?: object;
}

function readManifest(folder: string): Manifest {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    // Without a manifest there is nothing of the old kind to fit to.
    return typeof value === 'object' && value !== null ? (value as Manifest) : { type: 'module' };
  } catch {
    return { type: 'module' };
  }
}

/** `@acme/Checkout API` → `checkout-api`; empty when nothing is left. */
function nameFrom(text: string): string {
  return text
    .replace(/^@[^/]*\//, '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64);
}

interface EnvFile {
  file: string;
  values: Record<string, string>;
}

function dotenv(folder: string, file: string): Record<string, string> {
  try {
    const lines = readFileSync(join(folder, file), 'utf8').split(/\r?\n/);
    return Object.fromEntries(
      lines.flatMap((line) => {
        const [, name, value] = /^\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
        return name ? [[name, value!.replace(/^(["'])(.*)\1$/, '$2')]] : [];
      }),
    );
  } catch {
    return {};
  }
}

interface ComposeFound {
  file: string;
  name: string;
  kind: 'redis' | 'postgres' | 'mysql';
  port: number | null;
}

function redisOf(
  env: NodeJS.ProcessEnv,
  files: readonly EnvFile[],
  compose: readonly ComposeFound[],
  given: string | undefined,
): FoundRedis[] {
  const found: FoundRedis[] = [];
  const add = (url: string, from: string, set: string | null) => {
    if (found.every((one) => one.url !== url))
      found.push({ url, shown: redactUrl(url), from, set });
  };
  try {
    const { url, source } = resolveRedis({ url: given, env });
    const from = {
      option: '--redis',
      environment: 'FLYBALL_REDIS_URL',
      embedded: 'the data folder',
    };
    add(url, from[source], source === 'option' ? redactUrl(url) : null);
  } catch {
    // None is named; what follows is a guess. A wrong one is told by the commands that need it.
  }
  if (given === undefined && found.length === 0) {
    for (const { file, values } of [{ file: '', values: env }, ...files]) {
      for (const name of ['FLYBALL_REDIS_URL', 'REDIS_URL']) {
        const url = values[name];
        if (url && /^rediss?:\/\//.test(url))
          add(url, file === '' ? name : `${name} of ${file}`, `$${name}`);
      }
    }
    for (const { kind, file, port } of compose) {
      const url = `redis://127.0.0.1:${port}`;
      if (kind === 'redis' && port !== null) add(url, file, url);
    }
    add('redis://127.0.0.1:6379', 'localhost', 'redis://127.0.0.1:6379');
  }
  return found;
}

function databaseOf(
  env: NodeJS.ProcessEnv,
  files: readonly EnvFile[],
  compose: readonly ComposeFound[],
): FoundDatabase | null {
  for (const { file, values } of [{ file: '', values: env }, ...files]) {
    const names = [...new Set([...DATABASE_VARIABLES, ...Object.keys(values).sort()])];
    for (const variable of names) {
      const url = values[variable] ?? '';
      const kind = kindOf(url);
      if (kind === null) continue;
      return { kind, variable, from: file === '' ? 'the environment' : file, url };
    }
  }
  const service = compose.find(({ kind }) => kind !== 'redis');
  if (service === undefined) return null;
  const { kind, file, name } = service;
  return {
    ...{ kind: kind as FoundDatabase['kind'], variable: 'DATABASE_URL' },
    ...{ from: `${file} (${name})`, url: null },
  };
}

/** By the scheme of an address; null for what is none. */
export function kindOf(url: string): FoundDatabase['kind'] | null {
  if (/^postgres(ql)?:\/\//.test(url)) return 'postgres';
  return /^(mysql|mariadb):\/\//.test(url) ? 'mysql' : null;
}
