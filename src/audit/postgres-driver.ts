/** One connection to the PostgreSQL that keeps audit logs, by the optional package `pg`; what is wrong with it in words. Stage: audit → daemon, cli. */
import { readFile } from 'node:fs/promises';
import type { Client } from 'pg';
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { optionalPackage } from '../optional-package.js';

export type PostgresClient = Client;

const DEADLINE_MS = 10_000;
const MIGRATION = new URL('../../deploy/postgres/audit.sql', import.meta.url);

/** Settings that no retry mends: no such table, role, password, database, right. */
const FOR_A_PERSON = /^(42P01|42703|42501|28...|3D000|3F000)$/;

/** A host that dies says no good-bye, and a server would keep its session, with the lock on exports, for hours. */
const NOTICE_DEATH =
  'SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4';

export async function connectPostgres(url: string): Promise<PostgresClient> {
  const { default: pg } = await optionalPackage(
    'pg',
    () => import('pg'),
    (text) => tableError(url, text),
  );
  let client: PostgresClient;
  try {
    client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: DEADLINE_MS,
      statement_timeout: DEADLINE_MS,
      query_timeout: DEADLINE_MS,
      application_name: 'flyball-audit',
      keepAlive: true,
    });
  } catch (error) {
    throw tableError(url, `the address cannot be read: ${(error as Error).message}`);
  }
  // A connection that breaks is met by the next query; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    // What speaks the protocol and knows no such setting keeps its own.
    await client.query(NOTICE_DEATH).catch(() => {});
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

/** Makes the table and its indexes, or leaves them as they are. */
export async function migrate(client: PostgresClient): Promise<void> {
  await client.query(await migrationText());
}

export function migrationText(): Promise<string> {
  return readFile(MIGRATION, 'utf8');
}

/** Fails if a person must mend something; a server that is away may come. */
export async function probePostgres(url: string): Promise<void> {
  let client: PostgresClient | null = null;
  try {
    client = await connectPostgres(url);
    const { rows } = await client.query(
      "SELECT has_table_privilege('flyball_audit', 'INSERT') AND has_table_privilege('flyball_audit', 'SELECT') AS may",
    );
    if (rows[0]?.may !== true) {
      throw tableError(url, 'this role lacks INSERT or SELECT on the table flyball_audit');
    }
  } catch (error) {
    if (error instanceof FlyballError) throw error;
    const { code = '', message } = error as { code?: string; message: string };
    if (FOR_A_PERSON.test(code)) throw tableError(url, message);
  } finally {
    await client?.end().catch(() => {});
  }
}

/** What came up on the way, with the address and the mend; what has them already stays. */
export function asTableError(url: string, error: Error): FlyballError {
  return error instanceof FlyballError ? error : tableError(url, error.message);
}

function tableError(url: string, fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_AUDIT_POSTGRES',
    `the table of audit logs at ${redactUrl(url)} cannot be used: ${fault}. \`flyball audit migrate --postgres <url>\` makes the table; docs/audit.md says which rights are needed.`,
  );
}
