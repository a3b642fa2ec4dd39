/** `flyball report`: what happened over a time, counted: changes, episodes, time at the bounds, trips, denials, objectives. Stage: cli. */
import { writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { EXIT, FlyballError } from '../errors.js';
import { describeFault } from '../faults.js';
import { HISTORY_MINUTE_MS, HISTORY_MINUTES, readHistory } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import { readReport } from '../view/report.js';
import type { ReportView } from '../view/report-types.js';
import { parseSince } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { reportPage } from './report-page.js';
import { reportLines, reportTable } from './report-text.js';
import { findLimiter, listLimiters, type Session, withRedis } from './session.js';
import { clean, localTime } from './text.js';

interface ReportFlags {
  since: ReturnType<typeof parseSince>;
  html?: string;
}

const DAY_MS = 86_400_000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('report')
      .description('What happened over a time, counted; of one limiter also what would be better.')
      .argument('[limiter]', 'default: all, as a table')
      .addOption(
        new Option('--since <when>', 'a length of time back (2h) or an ISO time')
          .argParser(parseSince)
          .default({ agoMs: DAY_MS }, '24h'),
      )
      .option('--html <file>', 'write it as a page with plots, to send to others')
      .addHelpText(
        'before',
        `Examples:
  flyball report                        the last day of all limiters, as a table
  flyball report checkout               one limiter, with its episodes
  flyball report checkout --since 7d
  flyball report --since 2026-05-04T00:00:00Z --json
  flyball report checkout --since 2h --html incident.html
`,
      )
      .action(async (limiter: string | undefined, flags: ReportFlags) => {
        await withRedis(io, (session) => report(io, session, limiter, flags));
      }),
  );
}

async function report(
  io: CliIo,
  session: Session,
  limiter: string | undefined,
  { since, html }: ReportFlags,
): Promise<void> {
  const addresses =
    limiter === undefined ? await listLimiters(session) : [await findLimiter(session, limiter)];
  const atMs = await redisNowMs(session.redis);
  const sinceMs = 'atMs' in since ? since.atMs : atMs - since.agoMs;
  if (sinceMs > atMs) {
    throw new UsageError(
      `--since ${localTime(sinceMs)} is still to come.`,
      'A report is of a time that has been.',
    );
  }
  const suggest = limiter !== undefined;
  const reports = await readReports(io, session, addresses, { sinceMs, suggest });
  if (html !== undefined) {
    await writePage(session, html, { sinceMs, atMs, addresses, reports });
    io.say(`Wrote ${clean(html)}.`);
  }
  if (io.flags.json) {
    io.json({ sinceMs, atMs, limiters: reports });
    return;
  }
  if (html !== undefined) return;
  if (atMs - sinceMs > HISTORY_MINUTES * HISTORY_MINUTE_MS) {
    io.say(io.ce.dim('Counts of requests are kept for 8 days: they are of those.'));
  }
  const [first] = reports;
  if (limiter !== undefined && first !== undefined) {
    for (const line of reportLines(io, first)) io.out(line);
  } else if (reports.length > 0) {
    io.out(`${localTime(sinceMs).slice(0, 16)} … ${localTime(atMs).slice(0, 16)}`);
    io.out(reportTable(io, reports));
    io.say(io.ce.dim(`One of them in full: flyball report ${clean(first!.limiter)}.`));
  } else if (addresses.length === 0) {
    io.say('No limiter is known here: `flyball run` adopts policies and registers them.');
  }
}

async function writePage(
  session: Session,
  file: string,
  of: { sinceMs: number; atMs: number; addresses: LimiterAddress[]; reports: ReportView[] },
): Promise<void> {
  const { sinceMs, atMs, addresses, reports } = of;
  const limiters = await Promise.all(
    reports.map(async (view) => {
      const address = addresses.find(({ name }) => name === view.limiter)!;
      return { view, rows: await readHistory(session.redis, limiterKeys(address), sinceMs, atMs) };
    }),
  );
  const page = reportPage({ sinceMs, atMs, redis: session.url, limiters });
  try {
    writeFileSync(file, page);
  } catch (error) {
    throw new FlyballError(
      'FLYBALL_E_CLI_USAGE',
      `--html ${file} cannot be written: ${(error as Error).message}. Name a file in a folder that is there.`,
    );
  }
}

/** One that cannot be read must not take the report away from the others. */
async function readReports(
  io: CliIo,
  session: Session,
  addresses: readonly LimiterAddress[],
  query: { sinceMs: number; suggest: boolean },
): Promise<ReportView[]> {
  const reports: ReportView[] = [];
  for (const address of addresses) {
    try {
      reports.push(await readReport(session.redis, address, query));
    } catch (error) {
      if (addresses.length === 1) throw error;
      io.exitCode = EXIT.fault;
      io.warn(`${address.name} is left out: ${clean(describeFault(error).message)}`);
    }
  }
  return reports;
}
