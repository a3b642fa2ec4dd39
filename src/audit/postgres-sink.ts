/** Exports to a table: held by an advisory lock of its connection, so that one writes; what is there already is left alone. Stage: audit → daemon. */
import { createHash } from 'node:crypto';
import { type Position, positionOf } from './export-line.js';
import { connectPostgres, type PostgresClient } from './postgres-driver.js';
import { headRow, itemRow, type Row } from './postgres-row.js';
import type { Signer } from './signature.js';
import type { Sink } from './sink.js';

const INSERT = `INSERT INTO flyball_audit
  (prefix, limiter, kind, stream_id, epoch, revision, at, actor, reason, sentence, hash, line)
SELECT $1, limiter, kind, stream_id, epoch, revision, to_timestamp(ms / 1000), actor, reason, sentence, hash, line
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::float8[], $8::text[], $9::text[],
  $10::text[], $11::text[], $12::text[]) WITH ORDINALITY
  AS t(limiter, kind, stream_id, epoch, revision, ms, actor, reason, sentence, hash, line, place)
ORDER BY place
ON CONFLICT DO NOTHING`;

const POSITIONS = `SELECT DISTINCT ON (limiter) limiter, stream_id AS id, hash, epoch::float8, revision::float8
FROM flyball_audit WHERE prefix = $1 AND kind = ANY($2) ORDER BY limiter, n DESC`;

export function createPostgresSink(options: {
  url: string;
  prefix: string;
  signer: Signer | null;
}): Sink {
  const { url, prefix, signer } = options;
  let client: PostgresClient | null = null;
  let positions = new Map<string, Position>();
  let heads = new Map<string, Position>();
  let held = false;

  async function drop(): Promise<void> {
    const old = client;
    client = null;
    held = false;
    await old?.end().catch(() => {});
  }

  async function acquire(): Promise<boolean> {
    client ??= await connectPostgres(url);
    if (held) return true;
    // Held by the connection: who dies lets go of it.
    const lock = await client.query(
      'SELECT pg_try_advisory_lock(hashtext($1), hashtext($2)) AS got',
      ['flyball_audit', prefix],
    );
    if (lock.rows[0]?.got !== true) return false;
    positions = await newest(client, ['change', 'note']);
    heads = await newest(client, ['head']);
    held = true;
    return true;
  }

  async function newest(of: PostgresClient, kinds: string[]): Promise<Map<string, Position>> {
    const { rows } = await of.query<Position & { limiter: string }>(POSITIONS, [prefix, kinds]);
    return new Map(rows.map(({ limiter, ...position }) => [limiter, position]));
  }

  async function insert(rows: readonly Row[]): Promise<void> {
    if (!held || client === null) throw new Error('another exporter writes to the table');
    const column = <T>(read: (row: Row) => T) => rows.map(read);
    await client.query(INSERT, [
      prefix,
      column((row) => row.limiter),
      column((row) => row.kind),
      column((row) => row.position.id),
      column((row) => row.position.epoch),
      column((row) => row.position.revision),
      column((row) => row.atMs),
      column((row) => row.actor),
      column((row) => row.reason),
      column((row) => row.sentence),
      column((row) => row.position.hash),
      column((row) => row.line),
    ]);
  }

  return {
    kind: 'postgres',
    name: `postgres:${createHash('sha256').update(withoutLogin(url)).digest('hex').slice(0, 16)}`,
    to: placeOf(url),
    signedBy: signer?.key ?? null,
    acquire,
    position: (limiter) => positions.get(limiter) ?? null,
    headed: (limiter) => heads.get(limiter) ?? null,
    async holds(limiter, hashes) {
      if (client === null) throw new Error('not connected');
      const { rows } = await client.query<{ hash: string }>(
        'SELECT hash FROM flyball_audit WHERE prefix = $1 AND limiter = $2 AND hash = ANY($3)',
        [prefix, limiter, hashes],
      );
      return new Set(rows.map((row) => row.hash));
    },
    async append(items) {
      await insert(items.map((item) => itemRow(item, signer)));
      for (const item of items)
        if (item.kind === 'entry') positions.set(item.limiter, positionOf(item));
    },
    appendHeads: (moved) => insert(moved.map((head) => headRow(head, signer))),
    reopen: drop,
    async release() {
      // By itself the server lets go of it a moment after the connection has ended.
      if (held) await client?.query('SELECT pg_advisory_unlock_all()').catch(() => {});
      await drop();
    },
  };
}

/** The same table has the same name, whoever signs in. */
function withoutLogin(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//').replace(/\?.*$/, '');
}

function placeOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return /^postgres(ql)?:$/.test(protocol) ? `postgres://${host}${pathname}` : 'postgres';
  } catch {
    return 'postgres';
  }
}
