/** Find what is there already: a program on PATH that is new enough, or a Redis server that a URL names. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { delimiter, join } from 'node:path';
import { connect as connectTls } from 'node:tls';

const ANSWER_WITHIN_MS = 5_000;

/**
 * @param {{ commands: string[], override: string, minimum: string, probe?: string[] }} wanted `probe`: what the
 *   program is given to print a version, where that is not its own
 * @returns {{ path?: string, fault?: string }} `fault` when there is one that will not do; {} when there is none
 */
export function findCommand({ commands, override, minimum, probe }, env) {
  const given = env[override];
  if (given) {
    const version = versionOf(given, probe);
    if (!version) {
      const what = probe ? 'does not answer' : 'is no Redis server that runs';
      return { fault: `${override} is ${given}, which ${what}.` };
    }
    return newEnough(version, minimum)
      ? { path: given }
      : { fault: tooOld(given, version, minimum) };
  }
  let fault;
  for (const command of commands) {
    for (const folder of (env.PATH ?? '').split(delimiter).filter(Boolean)) {
      const path = join(folder, command);
      if (!executable(path)) continue;
      const version = versionOf(path, probe);
      if (version && newEnough(version, minimum)) return { path };
      if (version) fault ??= tooOld(path, version, minimum);
    }
  }
  return fault ? { fault } : {};
}

/** @returns {Promise<string | null>} why the Redis of FLYBALL_REDIS_URL will not do, or null when it does */
export async function redisAtUrl(env, minimum) {
  let url;
  try {
    url = new URL(env.FLYBALL_REDIS_URL);
  } catch {
    return 'FLYBALL_REDIS_URL is not a URL: use redis://host:port, rediss://host:port or unix:///path.';
  }
  const shown =
    url.protocol === 'unix:' ? `unix://${url.pathname}` : `${url.protocol}//${url.host}`;
  try {
    const version = await askVersion(url, credentials(url, env));
    if (newEnough(version, minimum)) return null;
    return `the Redis of FLYBALL_REDIS_URL (${shown}) is ${version}, and ${minimum} or newer is needed.`;
  } catch (error) {
    return `the Redis of FLYBALL_REDIS_URL (${shown}) cannot be used: ${error.message}.`;
  }
}

/** `7.0.15` against `7.0`. */
export function newEnough(version, minimum) {
  const have = version.split('.').map(Number);
  const want = minimum.split('.').map(Number);
  for (let i = 0; i < want.length; i++) {
    if ((have[i] ?? 0) !== want[i]) return (have[i] ?? 0) > want[i];
  }
  return true;
}

function tooOld(path, version, minimum) {
  return `${path} is ${version}, and Flyball needs ${minimum} or newer: set FLYBALL_REDIS_SERVER to a newer one, or FLYBALL_REDIS_URL. Set-up does not replace an installed server.`;
}

function versionOf(path, probe) {
  const run = spawnSync(path, probe ?? ['--version'], {
    encoding: 'utf8',
    timeout: ANSWER_WITHIN_MS,
  });
  const version = probe ? /(\d+(?:\.\d+)+)/ : /server v=(\d+(?:\.\d+)*)/;
  return version.exec(run.stdout ?? '')?.[1] ?? null;
}

function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function credentials(url, env) {
  if (url.password) return [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  const file = env.FLYBALL_REDIS_PASSWORD_FILE;
  const password =
    env.FLYBALL_REDIS_PASSWORD || (file && readFileSync(file, 'utf8').replace(/\r?\n$/, ''));
  const user = decodeURIComponent(url.username) || env.FLYBALL_REDIS_USERNAME || '';
  return password ? [user, password] : null;
}

/** AUTH and INFO by hand: nothing is installed yet that could speak to Redis. */
function askVersion(url, auth) {
  const place =
    url.protocol === 'unix:'
      ? { path: decodeURIComponent(url.pathname) }
      : { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 6379) };
  return new Promise((ok, no) => {
    const socket = url.protocol === 'rediss:' ? connectTls(place) : connectPlain(place);
    let reply = '';
    const end = (settle, value) => {
      socket.destroy();
      settle(value);
    };
    socket.setTimeout(ANSWER_WITHIN_MS, () => end(no, new Error('no answer')));
    socket.once('error', (error) => end(no, error));
    socket.once('close', () => end(no, new Error('the connection was closed')));
    socket.on('data', (chunk) => {
      reply += chunk;
      const version = /redis_version:([\d.]+)/.exec(reply);
      if (version) end(ok, version[1]);
      else if (reply.startsWith('-')) end(no, new Error(reply.slice(1, reply.indexOf('\r'))));
    });
    if (auth) socket.write(command(['AUTH', ...auth.filter(Boolean)]));
    socket.write(command(['INFO', 'server']));
  });
}

function command(words) {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${parts.join('')}`;
}
