/** `flyball audit` and `flyball audit verify`: what changed, when, who and why; and proof that nobody edited it. Stage: cli. */
import { Command } from 'commander';
import { readEntries } from '../actuate/audit.js';
import { isReadable } from '../actuate/entry.js';
import type { LimiterAddress } from '../redis/keys.js';
import { entryRecord } from '../view/entry.js';
import { verifyCommand } from './audit-verify.js';
import { entryLines, unreadableLine } from './entry-text.js';
import { parseCount, parseSince } from './options.js';
import type { CliIo } from './output.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';
import { clean } from './text.js';

interface AuditFlags {
  since?: ReturnType<typeof parseSince>;
  limit: number;
  notes: boolean;
  full?: boolean;
}

const DEFAULT_LIMIT = 20;

export function register(program: Command, io: CliIo): void {
  const audit = new Command('audit')
    .description('What changed, when, by whom and why; newest first.')
    .argument('[limiter]', 'default: all')
    .option('--since <when>', 'a length of time back (2h) or an ISO time', parseSince)
    .option('--limit <n>', 'most entries to show', parseCount, DEFAULT_LIMIT)
    .option('--no-notes', 'changes only: no recommendations, no refusals')
    .option('--full', 'with --json: the inputs of each decision too')
    .addHelpText(
      'before',
      `Examples:
  flyball audit checkout                 the newest ${DEFAULT_LIMIT} entries
  flyball audit checkout --since 2h
  flyball audit --json --limit 500
  flyball audit verify                   check every hash, link and revision
`,
    )
    .action(async (limiter: string | undefined, flags: AuditFlags) => {
      await withRedis(io, (session) => showAudit(io, session, limiter, flags));
    });
  audit.addCommand(verifyCommand(io));
  program.addCommand(audit);
}

async function targets(session: Session, limiter: string | undefined): Promise<LimiterAddress[]> {
  return limiter === undefined ? listLimiters(session) : [await findLimiter(session, limiter)];
}

async function showAudit(
  io: CliIo,
  session: Session,
  limiter: string | undefined,
  flags: AuditFlags,
): Promise<void> {
  const sinceMs = await sinceTime(session, flags.since);
  const addresses = await targets(session, limiter);
  const pages = await Promise.all(
    addresses.map((address) =>
      readEntries(session.redis, address, {
        limit: flags.limit,
        ...(flags.notes ? {} : { kind: 'change' as const }),
        ...(sinceMs === undefined ? {} : { sinceMs }),
      }),
    ),
  );
  const all = pages.flatMap((page, i) =>
    [...page.entries, ...page.unreadable].map((entry) => ({ entry, name: addresses[i]!.name })),
  );
  const shown = all.sort((a, b) => byTime(b.entry) - byTime(a.entry)).slice(0, flags.limit);
  const more = pages.some((page) => page.next !== null) || all.length > shown.length;
  if (io.flags.json) {
    io.json({
      entries: shown.flatMap(({ entry }) =>
        isReadable(entry) ? [entryRecord(entry, flags.full === true)] : [],
      ),
      unreadable: shown.flatMap(({ entry, name }) =>
        isReadable(entry) ? [] : [{ limiter: name, ...entry }],
      ),
      more,
    });
    return;
  }
  const withLimiter = limiter === undefined && addresses.length > 1;
  for (const { entry, name } of shown) {
    io.out(
      isReadable(entry)
        ? entryLines(io.c, entry, { columns: io.columns, withLimiter })
        : unreadableLine(io.c, entry, withLimiter ? name : ''),
    );
  }
  if (shown.length === 0) {
    const what =
      limiter === undefined ? 'No limiter has entries' : `${clean(limiter)} has no entries`;
    io.say(`${what}${flags.since ? ' that new' : ''}.`);
  } else if (more) io.say(io.ce.dim(`Older entries exist: --limit ${flags.limit * 5} shows more.`));
}

async function sinceTime(
  session: Session,
  since: AuditFlags['since'],
): Promise<number | undefined> {
  if (since === undefined) return undefined;
  if ('atMs' in since) return since.atMs;
  // Stream ids are Redis's time, which may differ from ours.
  const [seconds] = await session.redis.time();
  return Number(seconds) * 1000 - since.agoMs;
}

function byTime(entry: { id: string }): number {
  const [ms = '0', n = '0'] = entry.id.split('-');
  return Number(ms) + Number(n) / 1e6;
}
