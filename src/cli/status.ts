/** `flyball status`: what is in force, what binds now, who holds it, who watches it. Stage: cli. */
import { Command } from 'commander';
import { EXIT } from '../errors.js';
import { describeFault } from '../faults.js';
import { statusView } from '../view/status.js';
import { readStatusFacts } from '../view/status-facts.js';
import type { CliIo } from './output.js';
import { findLimiter, listLimiters, withRedis } from './session.js';
import { statusLines, statusTable } from './status-text.js';
import { clean } from './text.js';

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('status')
      .description('What is in force, what binds now, the worst signal, holds, who watches.')
      .argument('[limiter]', 'default: all, as a table')
      .addHelpText(
        'before',
        'Examples:\n  flyball status\n  flyball status checkout\n  flyball status --json\n',
      )
      .action(async (limiter: string | undefined) => {
        await withRedis(io, async (session) => {
          const addresses =
            limiter === undefined
              ? await listLimiters(session)
              : [await findLimiter(session, limiter)];
          const read = await Promise.allSettled(
            addresses.map((address) => readStatusFacts(session, address)),
          );
          const facts = read.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
          for (const [i, one] of read.entries()) {
            if (one.status === 'fulfilled') continue;
            // One limiter that cannot be read must not take `status` away from the others.
            if (facts.length === 0) throw one.reason;
            io.exitCode = EXIT.fault;
            io.warn(
              `${addresses[i]!.name} is left out: ${clean(describeFault(one.reason).message)}`,
            );
          }
          const views = facts.map(statusView);
          const nowMs = facts[0]?.nowMs ?? Date.now();
          if (io.flags.json) {
            io.json({ redis: session.url, atMs: Math.floor(nowMs), limiters: views });
          } else if (limiter !== undefined) {
            io.out(statusLines(io.c, views[0]!, nowMs, io.columns));
          } else if (views.length > 0) {
            io.out(statusTable(io, views));
            io.say(io.ce.dim('flyball status <limiter> tells more.'));
          } else {
            io.say(
              `No limiter is known in Redis at ${session.url}. flyball run adopts policies and registers them.`,
            );
          }
        });
      }),
  );
}
