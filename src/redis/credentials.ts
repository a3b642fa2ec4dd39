/** Logins and TLS files for Redis from the environment, each fault with its setting's name and no secret. Stage: all that touch Redis. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { FlyballError } from '../errors.js';

export interface Login {
  username?: string;
  password?: string;
}

/** What `tls.connect` is given beside host and port. */
export interface TlsFiles {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
  servername?: string;
}

const TLS_FILES = {
  ca: 'FLYBALL_REDIS_TLS_CA',
  cert: 'FLYBALL_REDIS_TLS_CERT',
  key: 'FLYBALL_REDIS_TLS_KEY',
} as const;
const SERVERNAME = 'FLYBALL_REDIS_TLS_SERVERNAME';

const SERVER_LOGIN = {
  username: 'FLYBALL_REDIS_USERNAME',
  password: 'FLYBALL_REDIS_PASSWORD',
  file: 'FLYBALL_REDIS_PASSWORD_FILE',
};
const SENTINEL_LOGIN: typeof SERVER_LOGIN = {
  username: 'FLYBALL_REDIS_SENTINEL_USERNAME',
  password: 'FLYBALL_REDIS_SENTINEL_PASSWORD',
  file: 'FLYBALL_REDIS_SENTINEL_PASSWORD_FILE',
};

/** Every variable that this file reads. */
export const CREDENTIAL_VARIABLES: readonly string[] = [
  ...Object.values(SERVER_LOGIN),
  ...Object.values(SENTINEL_LOGIN),
  ...Object.values(TLS_FILES),
  SERVERNAME,
];

/** User and password from the environment, for a URL that carries none. */
export function environmentAuth(env: NodeJS.ProcessEnv): Login {
  return login(env, SERVER_LOGIN);
}

/** The same for the Sentinels themselves: they often know other users than the servers they watch. */
export function sentinelAuth(env: NodeJS.ProcessEnv): Login {
  return login(env, SENTINEL_LOGIN);
}

function login(env: NodeJS.ProcessEnv, names: typeof SERVER_LOGIN): Login {
  const file = env[names.file];
  let password = env[names.password];
  const username = env[names.username];
  if (!password && file) {
    try {
      password = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    } catch (cause) {
      throw new FlyballError(
        'FLYBALL_E_REDIS_PASSWORD_FILE',
        `${names.file} is ${JSON.stringify(file)}, which cannot be read (${(cause as NodeJS.ErrnoException).code}). Give a readable file that holds the password alone.`,
      );
    }
  }
  if (!password) return {};
  return { password, ...(username && { username }) };
}

/** CA, certificate, key and the server's name; read anew for each connection that is opened. */
export function environmentTls(env: NodeJS.ProcessEnv): TlsFiles {
  const files: TlsFiles = {};
  for (const [part, variable] of Object.entries(TLS_FILES) as ['ca', string][]) {
    const path = env[variable];
    if (path) files[part] = readPem(variable, path);
  }
  for (const [one, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    if (files[one] && !files[other]) {
      throw tlsFault(
        `${TLS_FILES[one]} is set and ${TLS_FILES[other]} is not. Give both, or neither.`,
      );
    }
  }
  try {
    createSecureContext(files);
  } catch (cause) {
    const { ca, cert, key } = TLS_FILES;
    throw tlsFault(
      `${ca}, ${cert} and ${key} cannot be used together (${(cause as Error).message}). The key must be that of the certificate, in PEM, without a passphrase.`,
    );
  }
  if (env[SERVERNAME]) files.servername = env[SERVERNAME];
  return files;
}

/** The first TLS setting that a connection without TLS would silently ignore. */
export function unusedTlsSetting(env: NodeJS.ProcessEnv): string | undefined {
  return [...Object.values(TLS_FILES), SERVERNAME].find((variable) => env[variable]);
}

function readPem(variable: string, path: string): Buffer {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw tlsFault(
      `${variable} is ${JSON.stringify(path)}, which cannot be read (${(cause as NodeJS.ErrnoException).code}). Give a readable PEM file.`,
    );
  }
  if (bytes.includes('-----BEGIN ')) return bytes;
  throw tlsFault(`${variable} is ${JSON.stringify(path)}, which is not PEM. Give a PEM file.`);
}

export function tlsFault(text: string): FlyballError {
  return new FlyballError('FLYBALL_E_REDIS_TLS', text);
}
