/** `flyball audit verify`: proof that nobody edited the log or took anything out of it. Stage: cli. */
import { Command } from 'commander';
import { verifyAudit } from '../actuate/audit.js';
import { EXIT } from '../errors.js';
import type { CliIo } from './output.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';
import { clean } from './text.js';

export function verifyCommand(io: CliIo): Command {
  return new Command('verify')
    .description(
      'Check every hash, link and revision; exit 1 when something was edited or is missing.',
    )
    .argument('[limiter]', 'default: all')
    .option('--anchor <hash>', 'a head noted elsewhere, which the chain must hold (one limiter)')
    .addHelpText('before', 'Examples:\n  flyball audit verify\n  flyball audit verify checkout\n')
    .action(async (limiter: string | undefined, flags: { anchor?: string }) => {
      await withRedis(io, (session) => verify(io, session, limiter, flags.anchor));
    });
}

async function verify(
  io: CliIo,
  session: Session,
  limiter: string | undefined,
  anchor: string | undefined,
): Promise<void> {
  const reports = [];
  const addresses =
    limiter === undefined ? await listLimiters(session) : [await findLimiter(session, limiter)];
  for (const address of addresses) {
    reports.push(await verifyAudit(session.redis, address, anchor === undefined ? {} : { anchor }));
  }
  const broken = reports.some((report) => report.verdict === 'broken');
  if (broken) io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({ ok: !broken, limiters: reports });
    return;
  }
  for (const report of reports) {
    const mark = report.verdict === 'broken' ? io.c.red('broken') : io.c.green('ok');
    io.out(`${mark}  ${clean(report.sentence)}`);
    io.say(io.ce.dim(`    head ${report.head}`));
  }
  if (reports.length === 0) io.say('No limiter is known here: there is nothing to verify.');
}
