/** `flyball rollback`: the values of an old revision come back, and hold. Stage: cli. */
import type { Command } from 'commander';
import { findRevision } from '../actuate/audit.js';
import { type RollbackTarget, rollback } from '../actuate/verbs/rollback.js';
import { FlyballError } from '../errors.js';
import type { LimiterAddress } from '../redis/keys.js';
import { type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import { parseRevision, parseWhole } from './options.js';
import type { CliIo } from './output.js';
import type { Session } from './session.js';

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'rollback',
    'Put the rate, capacity and cap of an old revision back, and hold them.',
    `  flyball rollback checkout 41              asks first; holds 1 h
  flyball rollback checkout 41 --for 4h --reason "deploy 3.2 is slow" --yes
  flyball rollback checkout 41 --dry-run`,
  )
    .argument('<limiter>')
    .argument('<revision>', 'see flyball audit <limiter>', parseRevision)
    .option(
      '--epoch <epoch>',
      'when a revision exists in several epochs (default: newest)',
      parseWhole,
    );
  holding(command, '1s … 365d (default 1h)').action(
    async (limiter: string, revision: number, flags: ChangeFlags & { epoch?: number }) => {
      await runChange(io, limiter, flags, async (session, address) =>
        rollback(await target(session, address, revision, flags.epoch), holdOf(flags)),
      );
    },
  );
  program.addCommand(command);
}

async function target(
  session: Session,
  address: LimiterAddress,
  revision: number,
  epoch: number | undefined,
): Promise<RollbackTarget> {
  const entry = await findRevision(session.redis, address, revision, epoch);
  const { name } = address;
  if (entry?.body.after == null) {
    const place = epoch === undefined ? '' : ` in epoch ${epoch}`;
    throw new FlyballError(
      'FLYBALL_E_AUDIT_NO_REVISION',
      `${name} has no audit entry for revision ${revision}${place}. \`flyball audit ${name}\` lists the revisions that are kept.`,
    );
  }
  return { epoch: entry.epoch, revision: entry.revision, after: entry.body.after };
}
