/** An audit entry as lines for a person. Pure. Stage: cli. */
import type { StoredEntry, UnreadableEntry } from '../actuate/audit.js';
import type { EntryValues } from '../actuate/entry.js';
import { storedMs } from '../redis/stream-id.js';
import type { Colours } from './output.js';
import { clean, localTime, number } from './text.js';

/** Two lines or more: what and when, who, numbers; then the sentence, wrapped. */
export function entryLines(
  c: Colours,
  entry: StoredEntry,
  options: { columns: number; withLimiter: boolean; numbers?: boolean },
): string {
  const { body } = entry;
  const label = entry.kind === 'change' ? c.bold(`r${entry.revision}`.padEnd(7)) : c.dim('note   ');
  const limiter = options.withLimiter ? `${clean(String(body.limiter))}  ` : '';
  const who = actor(c, entry);
  const numbers = options.numbers === false ? '' : changedNumbers(body.before, body.after);
  const first = [
    `${label}${c.dim(localTime(body.atMs))}  ${limiter}${who}  ${reason(c, entry)}`,
    numbers,
  ]
    .filter((part) => part !== '')
    .join('  ');
  const told = wrap(toldSentence(body), options.columns - 7);
  return [first, ...told.map((line) => `       ${c.dim(line)}`)].join('\n');
}

/** An entry that cannot be read still stands in its place. */
export function unreadableLine(c: Colours, entry: UnreadableEntry, limiter: string): string {
  const label = entry.revision === null ? '?' : `r${entry.revision}`;
  const at = localTime(storedMs(entry));
  const name = limiter === '' ? '' : `${clean(limiter)}  `;
  const told = `entry ${clean(entry.id)} cannot be read: ${entry.why}; flyball audit verify`;
  return `${c.bold(label.padEnd(7))}${c.dim(at)}  ${name}${c.red('unreadable')}  ${told}`;
}

/** `closed → open  rate 210 → 190/s  cap 44 → 34`; the values alone when there is no before. */
export function changedNumbers(before: EntryValues | null, after: EntryValues | null): string {
  if (after === null) return '';
  const parts: string[] = [];
  const say = (name: string, from: string | undefined, to: string, unit = '') => {
    if (from === undefined) parts.push(`${name}${to}${unit}`);
    else if (from !== to) parts.push(`${name}${from} → ${to}${unit}`);
  };
  const cap = (values: EntryValues) => (values.inFlightMax ? number(values.inFlightMax) : 'none');
  say('mode ', before?.mode, clean(after.mode));
  say('', before?.state, clean(after.state));
  say('rate ', before ? number(before.rate) : undefined, number(after.rate), '/s');
  say('capacity ', before ? number(before.capacity) : undefined, number(after.capacity));
  say('cap ', before ? cap(before) : undefined, cap(after));
  return parts.join(', ');
}

/** The sentence without its leading actor, where the actor stands beside it already. */
export function toldSentence(body: { actor?: { name?: unknown }; sentence?: unknown }): string {
  const sentence = clean(String(body.sentence ?? ''));
  const name = `${clean(String(body.actor?.name ?? '?'))} `;
  return sentence.startsWith(name) ? sentence.slice(name.length) : sentence;
}

/** Words to lines of at most `width`; a longer word stands alone. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  if (line !== '') lines.push(line);
  return lines;
}

function actor(c: Colours, { body }: StoredEntry): string {
  const name = clean(String(body.actor?.name ?? '?'));
  return body.actor?.kind === 'person' ? c.cyan(name) : name;
}

function reason(c: Colours, { body }: StoredEntry): string {
  const text = clean(String(body.reason ?? '?'));
  if (text === 'trip' || text === 'breaker_trip') return c.red(text);
  return body.actor?.kind === 'person' ? c.cyan(text) : c.yellow(text);
}
