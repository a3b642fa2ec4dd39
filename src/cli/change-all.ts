/** One verb for many limiters: shown and asked once, then done to each; what fails for one is told, and keeps no other from it. Stage: cli. */
import { applyVerb, readFacts } from '../actuate/verbs/apply.js';
import type { Facts, Planner, VerbPlan } from '../actuate/verbs/plan.js';
import { EXIT, FlyballError } from '../errors.js';
import type { LimiterAddress } from '../redis/keys.js';
import { listLimiters, type Session } from '../view/limiters.js';
import { clean } from '../view/text.js';
import { actorName, type ChangeFlags, checkAnswer, checkReason } from './change.js';
import { byFlags } from './flag-names.js';
import { type CliIo, UsageError } from './output.js';
import { withRedis } from './session.js';

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

export interface ForMany {
  /** Which of them; default: all that the registry knows. */
  select?(session: Session, limiters: LimiterAddress[]): Promise<LimiterAddress[]>;
  /** Asked once for each: what is written is what was shown. */
  plannerFor(session: Session, address: LimiterAddress): Planner | Promise<Planner>;
}

interface Row {
  limiter: string;
  status: 'done' | 'nothing' | 'dry_run' | 'declined' | 'failed';
  revision?: number;
  before?: VerbPlan['before'];
  after?: VerbPlan['after'];
  hold?: { untilMs: number | null } | null;
  sentence: string;
  notes?: string[];
}

interface Planned {
  address: LimiterAddress;
  planner: Planner | null;
  shown: { plan: VerbPlan; facts: Facts } | null;
  row: Row;
}

export async function runChangeAll(io: CliIo, flags: ChangeFlags, of: ForMany): Promise<void> {
  checkReason(flags);
  await withRedis(io, async (session) => {
    const known = await listLimiters(session);
    if (known.length === 0) {
      throw new FlyballError(
        'FLYBALL_E_CLI_UNKNOWN_LIMITER',
        `no limiter is known in Redis at ${session.url}: \`flyball run\` adopts policies and registers them.`,
      );
    }
    const limiters = of.select === undefined ? known : await of.select(session, known);
    checkAnswer(io, flags);
    const planned = await Promise.all(limiters.map((each) => plan(session, each, of)));
    const rows = planned.map(({ row }) => row);
    if (!io.flags.json) for (const each of planned) io.say(shownText(io, each, flags));
    const count = planned.filter(({ shown }) => shown !== null).length;
    const asks = flags.yes !== true && flags.dryRun !== true && count > 0;
    if (asks && !(await io.confirm(`Do it to ${count} limiter${count === 1 ? '' : 's'}?`))) {
      io.exitCode = EXIT.fault;
      if (!io.flags.json) return void io.say('Nothing was changed.');
      return io.json({ limiters: rows.map((row) => ({ ...row, status: 'declined' })) });
    }
    const results: Row[] = [];
    for (const each of planned) {
      results.push(flags.dryRun === true ? each.row : await change(session, each, flags));
    }
    tell(io, results, flags);
  });
}

function tell(io: CliIo, results: Row[], flags: ChangeFlags): void {
  const failed = results.filter(({ status }) => status === 'failed').length;
  if (failed > 0) io.exitCode = EXIT.fault;
  if (io.flags.json) {
    io.json({ limiters: results });
    return;
  }
  for (const { limiter, status, revision, sentence } of results) {
    const what = status === 'done' ? `revision ${revision}` : status.replace('_', ' ');
    io.out(`${clean(limiter)}  ${what}${status === 'failed' ? `  ${clean(sentence)}` : ''}`);
  }
  if (flags.dryRun) io.say('Dry run: nothing was written.');
  else if (failed > 0) {
    const others = failed < results.length ? '; the others are done' : '';
    io.say(`${failed} of ${results.length} failed and stand as they were${others}.`);
  }
}

/** `nothing to do` and what cannot be planned stand in the preview too: a person says yes to all that they see. */
function shownText(io: CliIo, { row, shown }: Planned, flags: ChangeFlags): string {
  if (row.status === 'failed')
    return `${io.ce.red('!')} ${clean(row.limiter)}: ${clean(row.sentence)}`;
  const notes = shown?.plan.notes ?? [];
  // The sentence is that of the audit entry, which tells of what is done.
  const would = shown !== null && flags.yes !== true ? `${io.ce.bold('would be:')} ` : '';
  return [
    `${would}${clean(row.sentence)}`,
    ...notes.map((note) => `  ${io.ce.yellow('!')} ${clean(note)}`),
  ].join('\n');
}

/** One that cannot be read must not keep the others from it. */
async function plan(session: Session, address: LimiterAddress, of: ForMany): Promise<Planned> {
  const limiter = address.name;
  try {
    const planner = await of.plannerFor(session, address);
    const facts = await readFacts(session.redis, address, { actor: actorName() });
    const made = planner(facts);
    if (made.kind === 'nothing') {
      const row: Row = { limiter, status: 'nothing', sentence: made.sentence };
      return { address, planner: null, shown: null, row };
    }
    const row = { limiter, status: 'dry_run' as const, ...told(made) };
    return { address, planner, shown: { plan: made, facts }, row };
  } catch (error) {
    const row: Row = { limiter, status: 'failed', sentence: messageOf(error) };
    return { address, planner: null, shown: null, row };
  }
}

async function change(
  session: Session,
  { address, planner, row }: Planned,
  flags: ChangeFlags,
): Promise<Row> {
  if (planner === null) return row;
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
    return { limiter, status: 'done', ...revision, ...told(outcome.plan) };
  } catch (error) {
    return { limiter, status: 'failed', sentence: messageOf(error) };
  }
}

const messageOf = (error: unknown) => (byFlags(error) as Error).message;

function told({ before, after, detail, sentence, notes }: VerbPlan) {
  const { until } = detail;
  const hold = typeof until === 'number' ? { untilMs: until === -1 ? null : until } : null;
  return { before, after, hold, sentence, notes };
}
