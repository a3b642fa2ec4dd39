/** Who takes most of a limiter, or is denied most, as a table or JSON. Stage: cli. */
import { readTop, type TopView } from '../view/top.js';
import type { CliIo } from './output.js';
import { findLimiter, type Session } from './session.js';
import { clean, clockTime, number, span } from './text.js';

export interface SubjectFlags {
  over: number;
  denied?: boolean;
  limit: number;
}

export async function showSubjects(
  io: CliIo,
  session: Session,
  limiter: string,
  flags: SubjectFlags,
): Promise<void> {
  const kind = flags.denied ? 'denied' : 'taken';
  const view = await readTop(session, await findLimiter(session, limiter), {
    by: kind,
    minutes: flags.over,
    limit: flags.limit,
  });
  if (io.flags.json) {
    io.json({ ...view });
    return;
  }
  const { atMs: nowMs, sinceMs, total, error, seen, read, subjects: shown } = view;
  const unit = kind === 'taken' ? 'tokens' : 'denials';
  const head = `${clean(limiter)} since ${clockTime(sinceMs)} (${span(nowMs - sinceMs)})`;
  if (shown.length === 0) {
    io.out(`${head}: no ${unit} by takes with a subject.`);
    io.say(io.ce.dim('Services add theirs every 10 s, unless they say topSubjects: false.'));
    return;
  }
  io.out(`${head}: ${number(total)} ${unit}`);
  io.out(tableOf(io, view));
  for (const line of caveats(view, unit)) io.say(io.ce.dim(line));
  if (error === 0 && read >= seen) io.say(io.ce.dim('All of it was counted.'));
}

function tableOf(io: CliIo, { by: kind, total, sinceMs, atMs, subjects: shown }: TopView): string {
  const overMs = atMs - sinceMs;
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
function caveats({ seen, read, error, total }: TopView, unit: string): string[] {
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
