/** `flyball audit`: what happened, as episodes; the entries behind them, as text, JSON or CSV, or as they come. Stage: cli. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { LimiterAddress } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import { type EntryChoice, showEntries } from './audit-entries.js';
import { type EpisodeRef, showEpisode, showEpisodes } from './audit-episodes.js';
import { follow } from './audit-follow.js';
import { migrateCommand } from './audit-migrate.js';
import { refuseUnknownReasons } from './audit-reasons.js';
import { verifyCommand } from './audit-verify.js';
import { sayHolds } from './held-now.js';
import { parseCount, parseSince } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';

type When = ReturnType<typeof parseSince>;

interface AuditFlags {
  since?: When;
  until?: When;
  actor?: string;
  reason?: string[];
  kind?: 'change' | 'note';
  entries?: boolean;
  episode?: EpisodeRef;
  diff?: boolean;
  full?: boolean;
  csv?: boolean;
  follow?: boolean;
  before?: string;
  limit?: number;
}

/** What is about single entries, so that asking for it is asking for them. */
const OF_ENTRIES = ['actor', 'reason', 'kind', 'diff', 'full', 'csv', 'follow'] as const;

export function register(program: Command, io: CliIo): void {
  const audit = new Command('audit')
    .description('What changed, when, by whom and why; newest first.')
    .argument('[limiter]', 'default: all')
    .option('--since <when>', 'a length of time back (2h) or an ISO time', parseSince)
    .option('--until <when>', 'the same: only what began before', parseSince)
    .option('--entries', 'each entry, in place of the episodes that they make')
    .option(
      '--episode <id>',
      'one episode with its entries: any revision in it, or its id',
      parseRef,
    )
    .option('--actor <who>', 'entries of autopilot, person, or a name (part of it)')
    .option('--reason <codes>', 'entries with these reason codes, with commas', parseReasons)
    .addOption(new Option('--kind <kind>', 'entries of that kind').choices(['change', 'note']))
    .option('--diff', 'entries with each field before and after')
    .option('--full', 'with --json: entries with the inputs of each decision too')
    .option('--csv', 'entries as CSV, all of them unless --limit is given')
    .option('--follow', 'entries as they come, until Ctrl-C')
    .option('--limit <n>', 'most episodes or entries to show (default: 20)', parseCount)
    .option('--before <id>', 'older ones: what --json gave as "next"')
    .addHelpText(
      'before',
      `Examples:
  flyball audit                                   what happened, over all limiters
  flyball audit checkout --since 12h              last night
  flyball audit checkout --episode 120            all changes of the episode with revision 120
  flyball audit checkout --actor alice --diff     what alice changed, field by field
  flyball audit --reason breaker_trip,trip --since 7d
  flyball audit --since 24h --csv > changes.csv
  flyball audit checkout --follow
  flyball audit verify                            check every hash, link and revision
`,
    )
    .action(async (limiter: string | undefined, flags: AuditFlags) => {
      refuseContradictions(io, limiter, flags);
      await withRedis(io, (session) => run(io, session, limiter, flags));
    });
  audit.addCommand(verifyCommand(io));
  audit.addCommand(migrateCommand(io));
  program.addCommand(audit);
}

async function run(
  io: CliIo,
  session: Session,
  limiter: string | undefined,
  flags: AuditFlags,
): Promise<void> {
  const addresses: LimiterAddress[] =
    limiter === undefined ? await listLimiters(session) : [await findLimiter(session, limiter)];
  const nowMs = await redisNowMs(session.redis);
  const { diff = false, full = false, csv = false, limit, before } = flags;
  const when = {
    ...(flags.since && { sinceMs: timeOf(flags.since, nowMs) }),
    ...(flags.until && { untilMs: timeOf(flags.until, nowMs) }),
  };
  if (flags.episode !== undefined) {
    return showEpisode(io, session, addresses[0]!, flags.episode, { diff, full, csv, limit });
  }
  if (flags.entries !== true && OF_ENTRIES.every((name) => flags[name] === undefined)) {
    await showEpisodes(io, session, addresses, { ...when, limit, before, named: limiter });
    if (!io.flags.json) await sayHolds(io, session, addresses);
    return;
  }
  await refuseUnknownReasons(session, addresses, flags.reason);
  const choice: EntryChoice = {
    ...when,
    ...chosenActor(flags.actor),
    ...(flags.kind && { kind: flags.kind }),
    ...(flags.reason && { reason: flags.reason }),
  };
  const shown = { diff, full, csv, limit, named: limiter };
  if (flags.follow) return follow(io, session, limiter, choice, shown);
  await showEntries(io, session, addresses, { ...choice, before }, shown);
  if (!io.flags.json && !csv) await sayHolds(io, session, addresses);
}

/** Stream ids are Redis's time, which may differ from ours. */
function timeOf(when: When, nowMs: number): number {
  return 'atMs' in when ? when.atMs : nowMs - when.agoMs;
}

function chosenActor(who: string | undefined): Pick<EntryChoice, 'actor' | 'by'> {
  if (who === undefined) return {};
  return who === 'autopilot' || who === 'person' ? { actor: who } : { by: who };
}

function refuseContradictions(io: CliIo, limiter: string | undefined, flags: AuditFlags): void {
  const refuse = (what: string, hint: string): never => {
    throw new UsageError(what, hint);
  };
  if (flags.csv && io.flags.json) refuse('--csv and --json are two forms.', 'Take one of them.');
  if (flags.episode !== undefined) {
    if (limiter === undefined) {
      refuse(
        '--episode is of one limiter, and none is named.',
        'flyball audit <limiter> --episode 120.',
      );
    }
    const other = (['actor', 'reason', 'kind', 'follow', 'before', 'since', 'until'] as const).find(
      (name) => flags[name] !== undefined,
    );
    if (other)
      refuse(`--episode shows all of one episode, so --${other} has no place.`, 'Leave one out.');
  }
  if (flags.follow) {
    const other = (['until', 'before'] as const).find((name) => flags[name] !== undefined);
    if (other)
      refuse(`--follow waits for what comes, so --${other} has no place.`, 'Leave one out.');
  }
}

/** `120`, `r120`, `#120`, or a stream id. */
function parseRef(text: string): EpisodeRef {
  const [, revision] = /^[r#]?(\d{1,15})$/.exec(text) ?? [];
  if (revision !== undefined && Number(revision) > 0) return { revision: Number(revision) };
  if (/^\d{1,16}-\d{1,20}$/.test(text)) return { id: text };
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no episode. Write a revision in it (120), or its id from --json.`,
  );
}

function parseReasons(text: string): string[] {
  const codes = text.split(',').map((code) => code.trim());
  if (codes.every((code) => /^[a-z][a-z0-9_]{0,63}$/.test(code))) return codes;
  throw new InvalidArgumentError(
    `${JSON.stringify(text)} is no list of reason codes. Write them as entries show them: law_cut,breaker_trip.`,
  );
}
