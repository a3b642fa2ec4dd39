/** What lies around a revision, for a person: is it still in force, what did it cost, which episode, how to undo it. Pure. Stage: cli. */
import type { StoredEntry } from '../actuate/audit.js';
import { begunBy, endOf } from '../actuate/verbs/ends.js';
import { thousands } from '../audit/episode-sentence.js';
import { sameNumbers } from '../audit/last-change.js';
import type { AroundView, Neighbour } from '../view/around.js';
import { timesText } from './audit-episodes.js';
import type { Colours } from './output.js';
import { clean, localTime, span } from './text.js';
import { shellWord } from './undo.js';

export function aroundLines(c: Colours, entry: StoredEntry, around: AroundView): string[] {
  const { stood, previous, next, episode } = around;
  const lines = [c.bold('around it')];
  if (previous !== null) lines.push(`  before  ${neighbourText(previous)}`);
  if (next !== null) lines.push(`  after   ${neighbourText(next)}`);
  const still = stood.untilMs === null ? 'in force for' : 'stood for';
  lines.push(`  ${still} ${span(stood.forMs)}${costText(stood.cost)}`);
  if (episode !== null && episode.changes > 1) {
    const { firstRevision, lastRevision, changes } = episode;
    lines.push(
      `  episode  ${timesText(episode)}  ${clean(episode.sentence)} (r${firstRevision}–r${lastRevision}, ${thousands(changes)} changes)`,
    );
  }
  const undo = undoOf(entry, around);
  if (undo.length > 0) lines.push(c.bold('undo'));
  for (const { command, does } of undo) lines.push(`  ${command}   ${c.dim(does)}`);
  return lines;
}

export interface Undo {
  /** To paste. */
  command: string;
  does: string;
}

/** Those that end a hold only while it is the newest word. */
export function undoOf(entry: StoredEntry, { previous, next }: AroundView): Undo[] {
  const { body } = entry;
  const limiter = clean(body.limiter);
  const commands: Undo[] = [];
  if (next === null || body.reason.startsWith('subject_')) {
    const ends = endsIt(entry, limiter);
    if (ends !== null) commands.push(ends);
  }
  if (previous !== null && movesNumber(entry)) {
    const since = next === null ? '' : `; r${next.revision} has replaced it since`;
    commands.push({
      command: `flyball rollback ${limiter} ${previous.revision} --dry-run`,
      does: `shows the way to the values before it, which are held then${since}`,
    });
  }
  return commands;
}

/** What a rollback puts back; the breaker and the mode it leaves as they are. */
function movesNumber({ body: { before, after } }: StoredEntry): boolean {
  return before !== null && after !== null && !sameNumbers(before, after);
}

function endsIt({ body }: StoredEntry, limiter: string): Undo | null {
  const { reason, detail, before, after } = body;
  if (['subject_block', 'subject_exempt', 'subject_limit'].includes(reason)) {
    const subject = typeof detail?.subject === 'string' ? shellWord(detail.subject) : null;
    return {
      command: `flyball subject ${limiter} ${subject ?? '<subject>'} --clear`,
      does: 'takes it back',
    };
  }
  // A trip may be the autopilot's; what was written while it stood open is none.
  const opened = after?.state === 'open' && before?.state !== 'open';
  const begun = opened ? 'open' : begunBy(reason);
  return begun && endOf(begun, limiter);
}

function neighbourText({ revision, atMs, actor, reason }: Neighbour): string {
  return `r${revision} ${localTime(atMs)} ${clean(actor)} ${clean(reason)}`;
}

function costText(cost: AroundView['stood']['cost']): string {
  if (cost === null) return '';
  const missed =
    cost.objectiveMissedS > 0
      ? `objective missed ${span(cost.objectiveMissedS * 1000)}`
      : 'objective met';
  return `; in its minutes ${thousands(cost.denied)} denied, ${missed}`;
}
