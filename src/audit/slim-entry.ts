/** An audit entry without the inputs of its decision, which are most of it: so much as episodes tell of, read fast. Pure. Stage: audit. */
import { isReadable, readEntry } from '../actuate/entry.js';
import type { EpisodeEntry } from './episode-types.js';

/** A stream's entry; null: it cannot be read. */
export function readSlim(id: string, fields: readonly string[]): EpisodeEntry | null {
  const at = fields.indexOf('body') + 1;
  const text = fields[at];
  const short = at === 0 || text === undefined ? null : withoutInputs(text);
  if (short !== null) {
    const entry = readEntry(id, fields.with(at, short));
    if (isReadable(entry)) return slimEntry(entry);
  }
  const entry = readEntry(id, fields);
  return isReadable(entry) ? slimEntry(entry) : null;
}

/**
 * Most of the time of a page goes into parsing, so `sample` and all after the sentence are cut out of the text. In
 * canonical JSON the keys of a body come in their order, and a quote within a string is escaped, so what looks like a
 * key is one. It may be a key of something within the body: then either its brackets do not match and the text is none,
 * or there are two sentences before `v`, after which only verdicts have one. Null: to be read whole.
 */
function withoutInputs(text: string): string | null {
  const sample = text.indexOf(',"sample":{');
  const sentence = sample < 0 ? -1 : text.indexOf(SENTENCE, sample);
  if (sentence < 0) return null;
  const version = text.lastIndexOf(',"v":');
  const another = text.indexOf(SENTENCE, sentence + 1);
  if (version < sentence || (another >= 0 && another < version)) return null;
  const after = AFTER.map((key) => text.indexOf(key, sentence)).find((at) => at >= 0) ?? version;
  return `${text.slice(0, sample)}${text.slice(sentence, after)}}`;
}

const SENTENCE = ',"sentence":"';
const AFTER = [',"stateBefore":', ',"terms":'];

function slimEntry({ kind, epoch, revision, id, body }: EpisodeEntry): EpisodeEntry {
  const { atMs, actor, reason, sentence, before, after, law, detail } = body;
  return {
    ...{ id, kind, epoch, revision },
    body: {
      ...{ atMs, actor, reason, sentence, before, after },
      ...(law === undefined ? {} : { law }),
      ...(detail === undefined ? {} : { detail }),
    },
  };
}
