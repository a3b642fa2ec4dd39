/** `flyball audit migrate`: makes the PostgreSQL table to which audit logs are exported. Stage: cli. */
import { Command } from 'commander';
import { asTableError, connectPostgres, migrate, migrationText } from '../audit/postgres-driver.js';
import { redactUrl } from '../log.js';
import { setting } from './audit-verify.js';
import type { CliIo } from './output.js';
import { clean } from './text.js';

export function migrateCommand(io: CliIo): Command {
  return new Command('migrate')
    .description('Make the PostgreSQL table for exported audit logs, or leave it as it is.')
    .option('--postgres <url>', 'default: FLYBALL_AUDIT_POSTGRES')
    .option('-n, --dry-run', 'print the SQL and run nothing')
    .addHelpText(
      'before',
      `Examples:
  flyball audit migrate --postgres postgres://admin@db/ops
  flyball audit migrate --dry-run        the SQL, to run it yourself
`,
    )
    .action((flags: { postgres?: string; dryRun?: boolean }) => run(io, flags));
}

async function run(io: CliIo, flags: { postgres?: string; dryRun?: boolean }): Promise<void> {
  if (flags.dryRun === true) {
    const sql = await migrationText();
    if (io.flags.json) io.json({ dryRun: true, sql });
    else io.out(sql.trimEnd());
    return;
  }
  const url = setting(io, '--postgres', flags.postgres ?? true, 'FLYBALL_AUDIT_POSTGRES');
  const client = await connectPostgres(url).catch((error: Error) => {
    throw asTableError(url, error);
  });
  try {
    await migrate(client);
  } catch (error) {
    throw asTableError(url, error as Error);
  } finally {
    await client.end().catch(() => {});
  }
  if (io.flags.json) io.json({ dryRun: false, table: 'flyball_audit' });
  else io.out(`${io.c.green('ok')}  table flyball_audit is there, at ${clean(redactUrl(url))}.`);
}
