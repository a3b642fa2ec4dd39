/** Proof of a table of exported logs, without Redis: its lines in the order in which they came. Stage: audit → cli. */
import { createLineCheck } from './check-lines.js';
import { type EntryLine, type GapLine, type HeadLine, parseLine } from './export-line.js';
import { asTableError, connectPostgres } from './postgres-driver.js';
import { headRow, itemRow, type Row } from './postgres-row.js';
import type { ExportReport, ExportVerifyOptions } from './verify-folder.js';

const PAGE = 500;

/** A row as it is read: its line, and what of it is asked for in SQL. */
interface Stored extends Pick<Row, 'kind' | 'limiter' | 'line' | 'actor' | 'reason' | 'sentence'> {
  place: string;
  stream_id: string;
  epoch: number;
  revision: number;
  ms: number;
  hash: string;
}

export async function verifyPostgres(
  url: string,
  prefix: string,
  shown: string,
  options: ExportVerifyOptions,
): Promise<ExportReport> {
  const check = createLineCheck(options);
  const report: ExportReport = { from: shown, first: 1, files: 0, limiters: [] };
  const client = await connectPostgres(url).catch((error: Error) => {
    throw asTableError(url, error);
  });
  try {
    let after = '0';
    for (;;) {
      const { rows } = await client.query<Stored>(
        `SELECT n::text AS place, line, limiter, kind, stream_id, epoch::float8, revision::float8,
           (extract(epoch FROM at) * 1000)::float8 AS ms, actor, reason, sentence, hash FROM flyball_audit
         WHERE prefix = $1 AND n > $2 AND ($3::text IS NULL OR limiter = $3) ORDER BY n LIMIT ${PAGE}`,
        [prefix, after, options.limiter ?? null],
      );
      for (const row of rows) {
        const { place, line: text, limiter } = row;
        const where = `row ${place}`;
        const line = parseLine(text);
        if (line === null || line.kind === 'segment' || line.limiter !== limiter) {
          report.fault ??= {
            where,
            what: 'its line is none of an export, or of another limiter: it was edited',
          };
          continue;
        }
        const column = wrongColumn(row, rowOf(line));
        if (column !== null) {
          const what = `its column ${column} says otherwise than its line: it was edited`;
          report.fault ??= { where, what };
        }
        check.line(line, where);
      }
      if (rows.length < PAGE) break;
      after = rows.at(-1)!.place;
    }
  } catch (error) {
    throw asTableError(url, error as Error);
  } finally {
    await client.end().catch(() => {});
  }
  report.limiters = check.end();
  return report;
}

function rowOf(line: EntryLine | GapLine | HeadLine): Row {
  if (line.kind === 'head') return headRow(line, null);
  return itemRow(line.kind === 'gap' ? { kind: 'gap', gap: line } : line, null);
}

/** Whoever asks in SQL sees the columns alone: they must say what the line says. */
function wrongColumn(stored: Stored, { position, atMs, ...told }: Row): string | null {
  const pairs: [string, unknown, unknown][] = [
    ['kind', stored.kind, told.kind],
    ['stream_id', stored.stream_id, position.id],
    ['epoch', stored.epoch, position.epoch],
    ['revision', stored.revision, position.revision],
    ['at', Math.round(stored.ms), Math.round(atMs)],
    ['actor', stored.actor, told.actor],
    ['reason', stored.reason, told.reason],
    ['sentence', stored.sentence, told.sentence],
    ['hash', stored.hash, position.hash],
  ];
  return pairs.find(([, is, was]) => is !== was)?.[0] ?? null;
}
