/** A Redis URL read into where and what it means: one server, Sentinel or Cluster. Pure. Stage: all that touch Redis. */
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';

export interface HostPort {
  host: string;
  port: number;
}

/** Who logs in, which database, and whether the connection is encrypted. */
interface Common {
  username?: string;
  password?: string;
  tls: boolean;
  db: number;
}

export type RedisPlace =
  | (Common & { kind: 'single'; path?: string; host?: string; port?: number })
  | (Common & { kind: 'sentinel'; sentinels: HostPort[]; master: string })
  | (Common & { kind: 'cluster'; nodes: HostPort[] });

const FORMS =
  'Use redis://host:port/db or unix:///path/to/socket; redis+sentinel://host:26379,host:26379/master-name; redis+cluster://host:port,host:port; with TLS rediss://host:port/db, rediss+sentinel:// or rediss+cluster://.';

/** What the schemes say, and the port of a host that names none. */
const SCHEMES: Record<string, { kind: RedisPlace['kind']; tls: boolean; port: number }> = {
  redis: { kind: 'single', tls: false, port: 6379 },
  rediss: { kind: 'single', tls: true, port: 6379 },
  'redis+sentinel': { kind: 'sentinel', tls: false, port: 26_379 },
  'rediss+sentinel': { kind: 'sentinel', tls: true, port: 26_379 },
  'redis+cluster': { kind: 'cluster', tls: false, port: 6379 },
  'rediss+cluster': { kind: 'cluster', tls: true, port: 6379 },
};

/**
 * `scheme://user:password@host:port,host:port/path`. The user's name and password are those of the servers that hold
 * data; Sentinels have their own, by environment. A fault names the URL without its password.
 */
export function parseRedisUrl(url: string): RedisPlace {
  if (url.startsWith('unix:')) return unixSocket(url);
  const parts = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/]*)@)?([^/?#]*)(\/[^?#]*)?(\?[^#]*)?$/i.exec(url);
  if (parts === null) throw badUrl(url, 'is not a URL');
  const [, name = '', userinfo = '', hosts = '', path = '', query = ''] = parts;
  const scheme = SCHEMES[name.toLowerCase()];
  if (scheme === undefined) throw badUrl(url, `begins with ${name}://`);
  if (query.length > 1)
    throw badUrl(url, 'has parameters after a question mark, and none are known');
  const servers = hosts.split(',').map((text) => hostPort(url, text, scheme.port));
  const segments = path.split('/').slice(1);
  const { kind, tls } = scheme;
  const common = { ...login(url, userinfo), tls };
  if (kind === 'sentinel') {
    const [master = '', db = '', ...more] = segments;
    if (master === '' || more.length > 0) {
      throw badUrl(url, 'does not end in the name that Sentinel knows the master by');
    }
    const plain = decoded(url, master);
    return { ...common, kind, sentinels: servers, master: plain, db: database(url, db) };
  }
  if (kind === 'cluster') {
    if (database(url, segments.join('/')) !== 0) {
      throw badUrl(url, 'names a database, and a cluster has only database 0');
    }
    return { ...common, kind, nodes: servers, db: 0 };
  }
  if (servers.length > 1) {
    throw badUrl(url, 'names several hosts: say with +sentinel or +cluster what they are');
  }
  return { ...common, kind, ...servers[0]!, db: database(url, segments.join('/')) };
}

function unixSocket(url: string): RedisPlace {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw badUrl(url, 'is not a URL');
  }
  const path = decoded(url, parsed.pathname);
  if (!path.startsWith('/') || path.length < 2) throw badUrl(url, 'has no absolute socket path');
  const userinfo = [parsed.username, parsed.password].filter(Boolean).join(':');
  const db = database(url, parsed.searchParams.get('db') ?? '');
  return {
    ...login(url, parsed.username ? userinfo : `:${parsed.password}`),
    kind: 'single',
    tls: false,
    path,
    db,
  };
}

function login(url: string, userinfo: string): { username?: string; password?: string } {
  const at = userinfo.indexOf(':');
  const username = decoded(url, at < 0 ? userinfo : userinfo.slice(0, at));
  const password = decoded(url, at < 0 ? '' : userinfo.slice(at + 1));
  return { ...(username && { username }), ...(password && { password }) };
}

function hostPort(url: string, text: string, defaultPort: number): HostPort {
  const parts = /^(\[[0-9a-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i.exec(text);
  if (parts === null) {
    throw badUrl(url, text === '' ? 'names no host' : `names the host ${JSON.stringify(text)}`);
  }
  const port = parts[2] === undefined ? defaultPort : Number(parts[2]);
  if (port < 1 || port > 65_535) throw badUrl(url, `names port ${port}`);
  return { host: parts[1]!.replace(/^\[|\]$/g, ''), port };
}

function decoded(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badUrl(url, 'holds a % that begins no %-encoded character');
  }
}

function database(url: string, text: string): number {
  if (text === '') return 0;
  if (!/^\d{1,5}$/.test(text)) throw badUrl(url, `names database ${JSON.stringify(text)}`);
  return Number(text);
}

function badUrl(url: string, fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_REDIS_URL',
    `Redis URL ${JSON.stringify(redactUrl(url))} ${fault}. ${FORMS}`,
  );
}
