/** What to do about a source that does not answer, by what it or the network said. Pure. Stage: cli. */
import type { Signal } from '../policy/schema.js';
import type { Missing } from '../sense/readings.js';

interface Mend {
  source?: Signal['source'];
  says: RegExp;
  mend: string;
}

const PORTS: Partial<Record<Signal['source'], string>> = {
  postgres: ' (PostgreSQL: 5432)',
  mysql: ' (MySQL: 3306)',
  prometheus: ' (Prometheus: 9090)',
};

/** The first that fits is told. */
const MENDS: readonly Mend[] = [
  {
    says: /environment variable (\w+) is not set/,
    mend: 'Set $1 where the daemon and this command run.',
  },
  {
    says: /holds no (\S+)(?: or \S+)? address/,
    mend: 'Give an address that begins with $1, where the daemon and this command run.',
  },
  {
    says: /ENOTFOUND|EAI_AGAIN|getaddrinfo/,
    mend: 'The name of the host is not known from here: is it spelt right, and does this machine resolve it?',
  },
  {
    says: /ECONNREFUSED/,
    mend: 'Nothing listens there: is the server up, and the port right$PORT?',
  },
  {
    says: /EHOSTUNREACH|ENETUNREACH/,
    mend: 'There is no way to that host from here: mend the route or the firewall.',
  },
  {
    source: 'postgres',
    says: /hidden from this role\. Run: GRANT pg_monitor TO (.+)/,
    mend: 'As a superuser of that server: GRANT pg_monitor TO $1;',
  },
  {
    source: 'postgres',
    says: /no replica follows/,
    mend: 'Give the address of a replica, or leave the signal out while there is none.',
  },
  {
    source: 'postgres',
    says: /password authentication failed|no password supplied|SASL/,
    mend: 'Mend user and password in the address (postgres://user:password@host/database).',
  },
  {
    source: 'postgres',
    says: /database ".*" does not exist/,
    mend: 'Mend the database at the end of the address.',
  },
  {
    source: 'postgres',
    says: /role ".*" does not exist/,
    mend: 'Create the role: CREATE ROLE <role> LOGIN PASSWORD …; GRANT pg_monitor TO <role>;',
  },
  {
    source: 'postgres',
    says: /no pg_hba\.conf entry/,
    mend: 'Allow this host and role in pg_hba.conf, or use TLS (?sslmode=require) if the entry wants it.',
  },
  {
    source: 'postgres',
    says: /does not support SSL/,
    mend: 'The server has no TLS: leave sslmode out of the address.',
  },
  {
    source: 'postgres',
    says: /certificate|SELF_SIGNED|unable to verify/i,
    mend: "Name your authority's certificate in the address: ?sslrootcert=/path/to/ca.pem.",
  },
  {
    source: 'mysql',
    says: /Access denied/,
    mend: 'Mend user and password in the address (mysql://user:password@host/database), or grant what docs/guides/signals.md states.',
  },
  {
    source: 'custom',
    says: /the function did not answer within/,
    mend: 'Ask for less in it, or raise its deadlineMs (950 ms at most).',
  },
  {
    source: 'custom',
    says: /no answer within/,
    mend: 'All functions of one file share a process, and one of them blocks it: none may compute for long without an await.',
  },
  {
    source: 'custom',
    says: /the function failed/,
    mend: 'Mend the function in the policy file; what it takes from env must be set where the daemon and this command run.',
  },
  {
    source: 'scrape',
    says: /is no metric/,
    mend: 'That is no page of metrics: mend the path of the address, usually /metrics.',
  },
  {
    says: /certificate/i,
    mend: "Give tls: { ca: '/path/to/ca.pem' } to the signal, with your authority's certificate.",
  },
  {
    says: /does not speak TLS/,
    mend: 'Write http:// in the address, or turn TLS on at the server.',
  },
  { says: /^401/, mend: "Give its credentials: token: env('…'), basic or headers." },
  { says: /^403/, mend: 'These credentials may not read it: grant it to them, or give others.' },
  {
    says: /^404|path right/,
    mend: 'Mend the path of the address: for Prometheus the part before /api/v1, for a page usually /metrics.',
  },
  { says: /refuses the query/, mend: 'Mend the PromQL of the signal.' },
  { says: /is not installed/, mend: 'Install that package where the daemon runs.' },
];

/** What mends it, or null where what was said says it all. */
export function mendOf(signal: Signal, { reason, detail = '' }: Missing): string | null {
  const found = MENDS.find(
    ({ source, says }) => (source ?? signal.source) === signal.source && says.test(detail),
  );
  if (found !== undefined) {
    const [, first = ''] = found.says.exec(detail)!;
    return found.mend.replace('$1', () => first).replace('$PORT', PORTS[signal.source] ?? '');
  }
  if (reason === 'timeout') {
    return 'It took longer than deadlineMs: is it overloaded, or a firewall silent? Ask for less, or raise deadlineMs.';
  }
  return reason === 'unreachable' ? 'Is the server up, and the address right?' : null;
}
