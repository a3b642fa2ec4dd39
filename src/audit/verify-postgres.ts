/** Proof of a table of exported logs, without Redis: its lines in the order in which they came. Stage: audit → cli. */
import { createLineCheck } from './check-lines.js';
import { parseLine } from './export-line.js';
import { connectPostgres, tableError } from './postgres-driver.js';
import type { ExportReport, ExportVerifyOptions } from './verify-folder.js';

const PAGE = 500;

export async function verifyPostgres(
  url: string,
  prefix: string,
  shown: string,
  options: ExportVerifyOptions,
): Promise<ExportReport> {
  const check = createLineCheck(options);
  const report: ExportReport = { from: shown, first: 1, files: 0, limiters: [] };
  const client = await connectPostgres(url).catch((error: Error) => {
    throw tableError(url, error.message);
  });
  try {
    let after = '0';
    for (;;) {
      const { rows } = await client.query<{ place: string; line: string; limiter: string }>(
        `SELECT n::text AS place, limiter, line FROM flyball_audit
         WHERE prefix = $1 AND n > $2 AND ($3::text IS NULL OR limiter = $3) ORDER BY n LIMIT ${PAGE}`,
        [prefix, after, options.limiter ?? null],
      );
      for (const { place, line: text, limiter } of rows) {
        const where = `row ${place}`;
        const line = parseLine(text);
        if (line === null || line.kind === 'segment' || line.limiter !== limiter) {
          report.fault ??= {
            where,
            what: 'its line is none of an export, or of another limiter: it was edited',
          };
        } else check.line(line, where);
      }
      if (rows.length < PAGE) break;
      after = rows.at(-1)!.place;
    }
  } catch (error) {
    throw tableError(url, (error as Error).message);
  } finally {
    await client.end().catch(() => {});
  }
  report.limiters = check.end();
  return report;
}
