/** One verb for every limiter that the registry knows: shown and asked once, then done to each. Stage: cli. */
import { applyVerb, readFacts } from '../actuate/verbs/apply.js';
import type { Planner } from '../actuate/verbs/plan.js';
import { EXIT, FlyballError } from '../errors.js';
import type { LimiterAddress } from '../redis/keys.js';
import { actorName, type ChangeFlags, checkFlags } from './change.js';
import { type CliIo, UsageError } from './output.js';
import { listLimiters, type Session, withRedis } from './session.js';
import { clean } from './text.js';

/** A limiter, or `--all`: one of them, and not both. */
export function oneOrAll(limiter: string | undefined, all: boolean | undefined): string | null {
  if ((limiter === undefined) === (all !== true)) {
    const [what, hint] =
      limiter === undefined
        ? ['name a limiter, or give --all.', 'flyball status lists them.']
        : ['a limiter and --all exclude each other.', 'Leave one out.'];
    throw new UsageError(what, hint);
  }
  return limiter ?? null;
}

interface Done {
  limiter: string;
  status: 'done' | 'nothing' | 'dry_run' | 'declined' | 'failed';
  revision?: number;
  sentence: string;
}

export async function runChangeAll(
  io: CliIo,
  flags: ChangeFlags,
  planner: () => Planner,
): Promise<void> {
  checkFlags(io, flags);
  await withRedis(io, async (session) => {
    const limiters = await listLimiters(session);
    if (limiters.length === 0) {
      throw new FlyballError(
        'FLYBALL_E_CLI_UNKNOWN_LIMITER',
        `no limiter is known in Redis at ${session.url}: \`flyball run\` adopts policies and registers them.`,
      );
    }
    const previews = await Promise.all(limiters.map((each) => preview(session, each, planner())));
    if (!io.flags.json || !flags.yes) for (const { sentence } of previews) io.say(clean(sentence));
    const ask = flags.yes !== true && flags.dryRun !== true;
    if (ask && !(await io.confirm(`Do it to ${limiters.length} limiters?`))) {
      io.exitCode = EXIT.fault;
      if (!io.flags.json) return void io.say('Nothing was changed.');
      return io.json({ limiters: previews.map((each) => ({ ...each, status: 'declined' })) });
    }
    const results: Done[] = [];
    for (const [i, address] of limiters.entries()) {
      const skip = flags.dryRun === true || previews[i]!.status !== 'dry_run';
      results.push(skip ? previews[i]! : await change(session, address, planner(), flags));
    }
    if (results.some(({ status }) => status === 'failed')) io.exitCode = EXIT.fault;
    if (io.flags.json) return io.json({ limiters: results });
    for (const { limiter, status, revision, sentence } of results) {
      const what = status === 'done' ? `revision ${revision}` : status.replace('_', ' ');
      io.out(`${clean(limiter)}  ${what}${status === 'failed' ? `  ${clean(sentence)}` : ''}`);
    }
    if (flags.dryRun) io.say('Dry run: nothing was written.');
  });
}

/** One that cannot be read or written must not keep the others from it. */
async function preview(session: Session, address: LimiterAddress, planner: Planner): Promise<Done> {
  try {
    const plan = planner(await readFacts(session.redis, address, { actor: actorName() }));
    const status = plan.kind === 'nothing' ? 'nothing' : 'dry_run';
    return { limiter: address.name, status, sentence: plan.sentence };
  } catch (error) {
    return { limiter: address.name, status: 'failed', sentence: (error as Error).message };
  }
}

async function change(
  session: Session,
  address: LimiterAddress,
  planner: Planner,
  flags: ChangeFlags,
): Promise<Done> {
  const limiter = address.name;
  try {
    const outcome = await applyVerb(session.redis, address, planner, {
      ...{ actor: actorName(), reason: flags.reason, dryRun: false, nowMs: Date.now },
      approve: async () => true,
    });
    if (outcome.status === 'nothing') {
      return { limiter, status: 'nothing', sentence: outcome.sentence };
    }
    const revision = outcome.status === 'done' ? { revision: outcome.revision } : {};
    return { limiter, status: 'done', ...revision, sentence: outcome.plan.sentence };
  } catch (error) {
    return { limiter, status: 'failed', sentence: (error as Error).message };
  }
}
