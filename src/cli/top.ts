/** `flyball top`: who takes most, or who is denied most, over the last minutes. Stage: cli. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { limiterKeys } from '../redis/keys.js';
import { MINUTE_MS } from '../redis/top-fields.js';
import { mergeMinutes, type TopSubject, type TopWindow, topOf } from '../report/top-window.js';
import { parseCount } from './options.js';
import type { CliIo } from './output.js';
import { findLimiter, type Session, withRedis } from './session.js';
import { clean, clockTime, number, span } from './text.js';

interface TopFlags {
  over: number;
  denied?: boolean;
  limit: number;
}

const WINDOWS: Readonly<Record<string, number>> = { '1m': 1, '5m': 5, '60m': 60, '1h': 60 };
const DEFAULT_LIMIT = 20;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('top')
      .description('Who takes most of a limiter, or is denied most, in the last minutes.')
      .argument('<limiter>')
      .addOption(
        new Option('--over <window>', '1m, 5m or 60m').argParser(parseWindow).default(5, '5m'),
      )
      .option('--denied', 'by how often they were denied, instead of the tokens they took')
      .option('--limit <n>', 'most subjects to show', parseCount, DEFAULT_LIMIT)
      .addHelpText(
        'before',
        `Examples:
  flyball top checkout                   who took most tokens in the last 5 minutes
  flyball top checkout --denied --over 1m
  flyball top checkout --over 60m --json
`,
      )
      .action(async (limiter: string, flags: TopFlags) => {
        await withRedis(io, (session) => showTop(io, session, limiter, flags));
      }),
  );
}

function parseWindow(text: string): number {
  const minutes = WINDOWS[text];
  if (minutes !== undefined) return minutes;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is no window. Write 1m, 5m or 60m.`);
}

async function showTop(
  io: CliIo,
  session: Session,
  limiter: string,
  flags: TopFlags,
): Promise<void> {
  const keys = limiterKeys(await findLimiter(session, limiter));
  const [seconds, micros] = await session.redis.time();
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  const last = Math.floor(nowMs / MINUTE_MS);
  const first = last - flags.over;
  const pipeline = session.redis.pipeline();
  for (let minute = first; minute <= last; minute++) pipeline.hgetall(keys.top(minute));
  const replies = (await pipeline.exec()) ?? [];
  const failed = replies.find(([error]) => error)?.[0];
  if (failed) throw failed;
  const window = mergeMinutes(replies.map(([, hash]) => hash as Record<string, string>));
  const kind = flags.denied ? 'denied' : 'taken';
  const shown = topOf(window, kind, flags.limit);
  const { total, error } = window[kind];
  const sinceMs = first * MINUTE_MS;
  if (io.flags.json) {
    const { seen, read } = window;
    io.json({ limiter, by: kind, sinceMs, atMs: nowMs, total, error, seen, read, subjects: shown });
    return;
  }
  const unit = kind === 'taken' ? 'tokens' : 'denials';
  const head = `${clean(limiter)} since ${clockTime(sinceMs)} (${span(nowMs - sinceMs)})`;
  if (shown.length === 0) {
    io.out(`${head}: no ${unit} by takes with a subject.`);
    io.say(io.ce.dim('Services add theirs every 10 s, unless they say topSubjects: false.'));
    return;
  }
  io.out(`${head}: ${number(total)} ${unit}`);
  io.out(tableOf(io, shown, window, kind, nowMs - sinceMs));
  for (const line of caveats(window, kind, unit)) io.say(io.ce.dim(line));
  if (error === 0 && window.read >= window.seen) io.say(io.ce.dim('All of it was counted.'));
}

function tableOf(
  io: CliIo,
  shown: readonly TopSubject[],
  window: TopWindow,
  kind: 'taken' | 'denied',
  overMs: number,
): string {
  const { total } = window[kind];
  const cell = (value: number | null) => (value === null ? '' : number(rounded(value)));
  const rows = shown.map(({ subject, tokens, denied }) => {
    const count = (kind === 'taken' ? tokens : denied) ?? 0;
    return [
      clean(subject),
      cell(count),
      number(Number((count / (overMs / 1000)).toPrecision(2))),
      `${number(Number(((100 * count) / total).toPrecision(2)))} %`,
      cell(kind === 'taken' ? denied : tokens),
    ];
  });
  const by = kind === 'taken' ? ['tokens', 'denied'] : ['denied', 'tokens'];
  return io.table(['subject', by[0]!, 'per s', 'share', by[1]!], rows);
}

/** What of the numbers is not exact. */
function caveats({ seen, read, ...window }: TopWindow, kind: 'taken' | 'denied', unit: string) {
  const { error, total } = window[kind];
  const lines: string[] = [];
  if (error > 0) {
    const share = number((100 * error) / total);
    lines.push(`Each may have up to ${number(rounded(error))} ${unit} (${share} %) more.`);
  }
  if (read < seen) {
    const share = number((100 * read) / seen);
    lines.push(
      `Estimates: under load a process reads an even sample, here ${share} % of the takes.`,
    );
  }
  return lines;
}

const rounded = (value: number) => Math.round(value * 1000) / 1000;
