/** Episodes for a person: when, what and why in a line, what it cost in the next; one with its entries and the way back. Stage: cli. */
import { findRevision } from '../actuate/audit.js';
import { episodeTimes, thousands } from '../audit/episode-sentence.js';
import { FlyballError } from '../errors.js';
import type { LimiterAddress } from '../redis/keys.js';
import { readEntriesOf } from '../view/entries.js';
import { type EpisodesQuery, type EpisodeView, episodeAt, readEpisodes } from '../view/episodes.js';
import { following } from '../view/newest-first.js';
import { csvHead, csvRow } from './audit-csv.js';
import { DEFAULT_LIMIT, type EntryForm, entriesJson, entryText } from './audit-entries.js';
import { wrap } from './entry-text.js';
import type { CliIo, Colours } from './output.js';
import type { Session } from './session.js';
import { clean, localTime, span } from './text.js';

/** A revision within the episode, or the stream id of an entry. */
export type EpisodeRef = { revision: number } | { id: string };

/** Of one episode more entries than of a list: they are what was asked for. */
const EPISODE_LIMIT = 100;

export async function showEpisodes(
  io: CliIo,
  session: Session,
  addresses: readonly LimiterAddress[],
  query: EpisodesQuery & { named: string | undefined },
): Promise<void> {
  const { limit = DEFAULT_LIMIT, named } = query;
  const { episodes, next } = await readEpisodes(session.redis, addresses, { ...query, limit });
  if (io.flags.json) {
    io.json({ episodes, next });
    return;
  }
  const withLimiter = named === undefined && addresses.length > 1;
  for (const episode of episodes) io.out(episodeText(io, episode, withLimiter));
  const newest = episodes.find(({ moved, lane }) => moved && lane === 'in_force');
  if (newest !== undefined) {
    io.say(io.ce.dim(`Its entries: ${commandFor(newest)}${undoText(newest)}`));
  } else if (episodes.length === 0) io.say(nothing(query));
  if (next !== null) io.say(io.ce.dim(`Older ones exist: --limit ${limit * 5} shows more.`));
}

/** All of one: its sentence, what it cost, who did what, each entry (newest first), and how to go back. */
export async function showEpisode(
  io: CliIo,
  session: Session,
  address: LimiterAddress,
  ref: EpisodeRef,
  form: Omit<EntryForm, 'named'>,
): Promise<void> {
  const episode = await findEpisode(session, address, ref);
  const { listed, next } = await readEntriesOf(session.redis, [address], {
    limit: form.limit ?? (form.csv ? Number.POSITIVE_INFINITY : EPISODE_LIMIT),
    from: episode.id,
    before: following(episode.lastId),
  });
  if (form.csv) {
    io.raw(csvHead() + listed.map(csvRow).join(''));
    return;
  }
  if (io.flags.json) {
    io.json({ limiter: address.name, episode, ...entriesJson(listed, form, next) });
    return;
  }
  io.out(episodeText(io, episode, true));
  for (const act of episode.persons) {
    const why = act.why === null ? '' : `: ${clean(act.why)}`;
    io.out(`    ${io.c.cyan(`${clean(act.by)} ${clean(act.verb)}`)} r${act.revision}${why}`);
  }
  io.out('');
  for (const each of listed) io.out(entryText(io, each, { diff: form.diff, withLimiter: false }));
  if (next !== null) io.say(io.ce.dim('Older entries of it exist: --limit shows more.'));
  const undo = undoText(episode);
  if (undo !== '') io.say(io.ce.dim(undo.replace('; undo it', 'Undo it')));
}

async function findEpisode(
  session: Session,
  address: LimiterAddress,
  ref: EpisodeRef,
): Promise<EpisodeView> {
  const id = 'id' in ref ? ref.id : (await findRevision(session.redis, address, ref.revision))?.id;
  const found = id === undefined ? null : await episodeAt(session.redis, address, id);
  if (found !== null) return found;
  const what = 'id' in ref ? `at ${ref.id}` : `with revision ${ref.revision}`;
  throw new FlyballError(
    'FLYBALL_E_AUDIT_NO_REVISION',
    `${address.name} has no episode ${what}. \`flyball audit ${address.name}\` lists what is kept.`,
  );
}

/** `2026-05-04 02:14–02:31  checkout  orders-db waits 38; …`, and below it revisions and cost. */
export function episodeText(io: CliIo, episode: EpisodeView, withLimiter: boolean): string {
  const { c } = io;
  const limiter = withLimiter ? `${c.bold(clean(episode.limiter))}  ` : '';
  const [first = '', ...more] = wrap(clean(episode.sentence), Math.max(40, io.columns - 4));
  const lead = `${c.dim(timesText(episode))}  ${limiter}`;
  const lines = [`${lead}${paint(c, episode)(first)}`, ...more.map((line) => `    ${line}`)];
  const below = detailText(episode);
  return [...lines, ...(below === '' ? [] : [`    ${c.dim(below)}`])].join('\n');
}

/** With the day once, and again when it ended on another. */
export function timesText(episode: Pick<EpisodeView, 'fromMs' | 'toMs' | 'open'>): string {
  const day = localTime(episode.fromMs).slice(0, 10);
  const clock = (ms: number) => {
    const text = localTime(ms).slice(0, 16);
    return text.startsWith(day) ? text.slice(11) : text;
  };
  return `${day} ${episodeTimes(episode, clock)}`;
}

/** `r120–r160, 3,120 denied (rate 2,900, reserve 220), objective missed 5 min 10 s`. */
export function detailText({
  lane,
  firstRevision,
  lastRevision,
  cut,
  openMs,
  cost,
}: EpisodeView): string {
  const revisions =
    firstRevision === lastRevision ? `r${firstRevision}` : `r${firstRevision}–r${lastRevision}`;
  const parts = lane === 'would_be' ? [] : [revisions];
  if (cost !== null && cost.denied > 0) {
    const by = Object.entries(cost.byReason)
      .sort(([, m], [, n]) => n - m)
      .map(([reason, count]) => `${clean(reason)} ${thousands(count)}`);
    parts.push(`${thousands(cost.denied)} denied (${by.join(', ')})`);
  }
  if (cost !== null && cost.objectiveMissedS > 0) {
    parts.push(`objective missed ${span(cost.objectiveMissedS * 1000)}`);
  }
  if (openMs > 0) parts.push(`breaker open ${span(openMs)}`);
  if (cut) parts.push('it may have begun earlier');
  return parts.join(', ');
}

function paint(c: Colours, { cause, moved, lane }: EpisodeView): (text: string) => string {
  if (!moved || lane === 'would_be') return c.dim;
  if (cause.kind === 'breaker' || cause.kind === 'redis') return c.red;
  if (cause.kind === 'objective') return c.yellow;
  return cause.kind === 'person' ? c.cyan : (text) => text;
}

function commandFor({ limiter, firstRevision }: EpisodeView): string {
  return `flyball audit ${clean(limiter)} --episode ${firstRevision}`;
}

/** The values from before it; of a limiter that began in it those that it began with, when something moved them since. */
function undoText({ limiter, before, firstRevision, moved, lane }: EpisodeView): string {
  if (before === null || !moved || lane === 'would_be') return '';
  const revision = Math.max(1, firstRevision - 1);
  return `; undo it: flyball rollback ${clean(limiter)} ${revision} --dry-run`;
}

function nothing({ named, sinceMs, untilMs, before }: Parameters<typeof showEpisodes>[3]): string {
  const chosen = [sinceMs, untilMs, before].some((each) => each !== undefined);
  const who = named === undefined ? 'No limiter has changed' : `${clean(named)} has not changed`;
  return chosen ? `${who} in that time.` : `${who}: the log is empty.`;
}
