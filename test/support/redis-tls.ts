/** A Redis that speaks TLS, with an authority and certificates made for this run by openssl. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startRedis, type TestRedis } from './redis-server.js';
import { tempFolder } from './temp-folder.js';

/** The name that the server's certificate is for, besides 127.0.0.1. */
export const TLS_NAME = 'redis.flyball.test';

export interface Certificates {
  dir: string;
  ca: string;
  cert: string;
  key: string;
}

/** An authority, and one certificate that serves servers and clients alike. */
export function makeCertificates(alternative = `DNS:${TLS_NAME},IP:127.0.0.1`): Certificates {
  const dir = tempFolder('tls');
  const at = (name: string) => join(dir, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...curve,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-subj',
    '/CN=test authority',
    '-days',
    '2',
  );
  openssl('req', ...curve, '-keyout', 'one.key', '-out', 'one.csr', '-subj', '/CN=one');
  writeFileSync(at('one.ext'), `subjectAltName=${alternative}\n`);
  openssl(
    'x509',
    '-req',
    '-in',
    'one.csr',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'one.pem',
    '-days',
    '2',
    '-extfile',
    'one.ext',
  );
  return { dir, ca: at('ca.pem'), cert: at('one.pem'), key: at('one.key') };
}

export interface TestTlsRedis {
  readonly server: TestRedis;
  readonly tlsPort: number;
}

/** How a server or a Sentinel is told of its certificate: clients must show one of the authority. */
const settings = (files: Certificates, tlsPort: number): [name: string, value: string][] => [
  ['tls-port', String(tlsPort)],
  ['tls-cert-file', files.cert],
  ['tls-key-file', files.key],
  ['tls-ca-cert-file', files.ca],
  ['tls-auth-clients', 'yes'],
];

export async function startTlsRedis(
  files: Certificates,
  more: string[] = [],
): Promise<TestTlsRedis> {
  const tlsPort = await freePort();
  const server = await startRedis([
    ...settings(files, tlsPort).flatMap(([name, value]) => [`--${name}`, value]),
    ...more,
  ]);
  return { server, tlsPort };
}

/** One Sentinel that speaks TLS only, to clients and to the master that it names. */
export async function startTlsSentinel(
  files: Certificates,
  masterName: string,
  masterTlsPort: number,
): Promise<{ tlsPort: number; stop(): Promise<void> }> {
  const tlsPort = await freePort();
  const dir = tempFolder('tls-sentinel');
  const file = join(dir, 'sentinel.conf');
  const lines = [
    ...[['port', '0'], ['tls-replication', 'yes'], ['dir', dir], ...settings(files, tlsPort)],
    ['sentinel monitor', masterName, '127.0.0.1', String(masterTlsPort), '1'],
  ];
  writeFileSync(file, lines.map((line) => line.join(' ')).join('\n'));
  const child = spawn(process.env.FLYBALL_REDIS_SERVER ?? 'redis-server', [file, '--sentinel'], {
    stdio: 'ignore',
  });
  const gone = once(child, 'exit');
  return {
    tlsPort,
    async stop() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}
