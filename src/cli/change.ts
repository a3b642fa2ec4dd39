/** What all changing commands share: the flags, the preview, the question, the result. Stage: cli. */
import { hostname, userInfo } from 'node:os';
import { Command, Option } from 'commander';
import { applyVerb, type VerbOutcome } from '../actuate/verbs/apply.js';
import {
  DEFAULT_HOLD_MS,
  type Facts,
  type HoldFor,
  type Planner,
  type VerbPlan,
} from '../actuate/verbs/plan.js';
import { EXIT } from '../errors.js';
import type { LimiterAddress } from '../redis/keys.js';
import { parseSpan } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { preview } from './preview.js';
import { findLimiter, type Session, withRedis } from './session.js';
import { clean } from './text.js';
import { undoHint } from './undo.js';

export interface ChangeFlags {
  dryRun?: boolean;
  yes?: boolean;
  reason?: string;
  for?: number;
  hold?: boolean;
}

/** A command with `--dry-run`, `--yes`, `--reason`; examples stand first in its help. */
export function changing(name: string, description: string, examples: string): Command {
  return new Command(name)
    .description(description)
    .option('-n, --dry-run', 'show what would change, write nothing')
    .option('-y, --yes', 'do not ask (needed without a terminal)')
    .option('-r, --reason <text>', 'why, for the audit log')
    .addHelpText('before', `Examples:\n${examples}\n`);
}

/** `--for` and `--hold` of a verb whose hold has an expiry. */
export function holding(command: Command, byDefault: string): Command {
  return command
    .addOption(new Option('--for <span>', `how long: ${byDefault}`).argParser(parseSpan))
    .addOption(new Option('--hold', 'until a person ends it, instead of --for').conflicts('for'));
}

export function holdOf(flags: ChangeFlags): HoldFor {
  return flags.hold ? 'until-ended' : (flags.for ?? DEFAULT_HOLD_MS);
}

/** `ada@laptop (unverified)`: nobody checked it; Redis knows connections, not people. */
export function actorName(): string {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    // A container may run under a uid that has no name.
    user = `uid-${process.getuid?.() ?? '?'}`;
  }
  return clean(`${user.slice(0, 64)}@${hostname().slice(0, 100)} (unverified)`);
}

/** Shows, asks, writes, tells. `plannerFor` may read more from Redis first (an old revision). */
export async function runChange(
  io: CliIo,
  limiter: string,
  flags: ChangeFlags,
  plannerFor: (session: Session, address: LimiterAddress) => Promise<Planner> | Planner,
  /** Once it is written. */
  then?: (session: Session, address: LimiterAddress) => Promise<void>,
): Promise<void> {
  checkReason(flags);
  await withRedis(io, async (session) => {
    const address = await findLimiter(session, limiter);
    const planner = await plannerFor(session, address);
    checkAnswer(io, flags);
    const outcome = await applyVerb(session.redis, address, planner, {
      actor: actorName(),
      reason: flags.reason,
      dryRun: flags.dryRun === true,
      nowMs: Date.now,
      approve: approver(io, flags),
    });
    if (outcome.status === 'done') await then?.(session, address);
    tell(io, limiter, outcome);
  });
}

export function checkReason({ reason }: ChangeFlags): void {
  if (reason !== undefined && (reason.trim() === '' || reason.length > 500)) {
    throw new UsageError(
      `--reason has ${reason.length} characters; 1 … 500 are allowed.`,
      'Say it in a sentence.',
    );
  }
}

/** Once what is to be changed is known: with an unknown limiter no `--yes` would help. */
export function checkAnswer(io: CliIo, flags: ChangeFlags): void {
  if (!flags.yes && !flags.dryRun && !io.interactive) {
    throw new UsageError(
      'this changes what is in force, and there is no terminal to ask at.',
      'Add --yes to do it, or --dry-run to only look.',
      'FLYBALL_E_CLI_CONFIRM',
    );
  }
}

function approver(io: CliIo, flags: ChangeFlags) {
  let shown = false;
  return async (plan: VerbPlan, facts: Facts): Promise<boolean> => {
    if (shown) io.say(io.ce.yellow('It changed while you were reading. Now it would be:'));
    shown = true;
    io.say(preview(io.ce, plan, facts));
    return flags.yes === true || io.confirm('Do it?');
  };
}

function tell(io: CliIo, limiter: string, outcome: VerbOutcome): void {
  if (outcome.status === 'nothing') {
    if (io.flags.json) io.json({ limiter, status: 'nothing', sentence: outcome.sentence });
    else io.out(outcome.sentence);
    return;
  }
  const { plan, facts, status } = outcome;
  if (status === 'declined') io.exitCode = EXIT.fault;
  if (io.flags.json) {
    const until = plan.detail.until;
    io.json({
      limiter,
      verb: plan.reason,
      status: status === 'dry-run' ? 'dry_run' : status,
      ...(outcome.status === 'done'
        ? { epoch: outcome.epoch, revision: outcome.revision }
        : { epoch: facts.params.epoch, revision: facts.params.revision }),
      before: plan.before,
      after: plan.after,
      ...(plan.override === undefined ? {} : { subject: plan.override.subject, ...told(plan) }),
      hold: typeof until === 'number' ? { untilMs: until === -1 ? null : until } : null,
      ...(plan.detail.bounds === undefined ? {} : { bounds: plan.detail.bounds }),
      ...(plan.detail.rollout === undefined ? {} : { rollout: plan.detail.rollout }),
      ...(plan.detail.evidence === undefined ? {} : { evidence: plan.detail.evidence }),
      sentence: plan.sentence,
      notes: plan.notes,
    });
  } else if (outcome.status === 'done') {
    io.out(`${io.c.green('done')}  revision ${outcome.revision}  ${clean(plan.sentence)}`);
    const undo = undoHint(plan, facts, limiter);
    if (undo) io.say(io.ce.dim(undo));
  } else if (status === 'dry-run') {
    io.out(preview(io.c, plan, facts));
    io.say('Dry run: nothing was written.');
  } else {
    io.say('Nothing was changed.');
  }
}

/** What was said of the subject, and what is; null: nothing. */
function told({ detail }: VerbPlan): { was: unknown; is: unknown } {
  return { was: detail.was ?? null, is: detail.is ?? null };
}
