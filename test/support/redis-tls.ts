/** A Redis that speaks TLS, with an authority and certificates made for this run by openssl. */
import { execFileSync } from 'node:child_process';
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

/** Clients must show a certificate of the authority. */
export async function startTlsRedis(
  files: Certificates,
  more: string[] = [],
): Promise<TestTlsRedis> {
  const tlsPort = await freePort();
  const server = await startRedis([
    '--tls-port',
    String(tlsPort),
    '--tls-cert-file',
    files.cert,
    '--tls-key-file',
    files.key,
    '--tls-ca-cert-file',
    files.ca,
    '--tls-auth-clients',
    'yes',
    ...more,
  ]);
  return { server, tlsPort };
}
