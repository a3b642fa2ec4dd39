/** What happened, to all limiters: episodes, newest first, of a time or of all, each with the way to undo it. Stage: dashboard. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { EpisodesAnswer } from '../../api/types.js';
import { api } from '../client.js';
import { wordsOf } from '../data/session.js';
import { useStore } from '../data/store.js';
import { leadOf } from '../limiter/told.js';
import { EpisodeWhen } from '../parts/episode-when.jsx';
import { Outside, withoutName } from '../parts/outside.jsx';
import { changeHash, historyHash, limiterHash, type Times } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { TimesForm } from './times.jsx';

const PAGE = 30;
/** Episodes of a thousand limiters cost their daemon something. */
const AGAIN_MS = 5000;
type Episodes = EpisodesAnswer['episodes'];
type Page = Pick<EpisodesAnswer, 'episodes' | 'next'>;

export function HistoryPage({ shown }: { shown: Times }) {
  useTitle('What happened · Flyball');
  return (
    <>
      <div class="head">
        <h1>What happened</h1>
        <p class="soft">
          Changes that belong together, newest first. One opens with its changes and their undo.
        </p>
      </div>
      <TimesForm shown={shown} />
      <EpisodesOf key={historyHash(shown)} shown={shown} />
    </>
  );
}

function EpisodesOf({ shown }: { shown: Times }) {
  const { entries, connection } = useStore();
  const alive = connection.kind === 'live';
  const { sinceMs, untilMs } = shown;
  const [told, setTold] = useState<Page | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const take = async (before?: string) => {
    try {
      const answer = await api.episodes({
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
        ...(sinceMs === null ? {} : { since: sinceMs }),
        ...(untilMs === null ? {} : { until: untilMs }),
      });
      setTold((old) => joined(old, answer, before));
      setFault(null);
    } catch (error) {
      setFault(wordsOf(error));
    }
  };
  useEffect(() => {
    void take();
  }, [alive]);
  // A new entry may belong to an episode that is shown: the newest are read again, though not at each.
  const newest = useRef<string | undefined>(undefined);
  newest.current = entries[0]?.id;
  const read = useRef(newest.current);
  useEffect(() => {
    // One timer for good: begun anew at each entry it would never ring while they come faster.
    const timer = setInterval(() => {
      if (read.current === newest.current || document.visibilityState !== 'visible') return;
      read.current = newest.current;
      void take();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      {fault !== null && <p class="error">{fault}</p>}
      {told === null ? (
        fault === null && <p class="empty">Reading it…</p>
      ) : told.episodes.length === 0 ? (
        <p class="empty">
          {sinceMs === null && untilMs === null
            ? 'Nothing was changed as far as the logs go back.'
            : 'Nothing was changed in that time.'}
        </p>
      ) : (
        <section class="sheet" aria-label="Episodes of all limiters">
          <ol class="story">
            {told.episodes.map((one) => (
              <Told key={keyOf(one)} one={one} />
            ))}
          </ol>
          {told.next !== null && (
            <button type="button" onClick={() => void take(told.next ?? undefined)}>
              Older
            </button>
          )}
        </section>
      )}
    </>
  );
}

/** Older ones behind those that are there; the newest in place of what they were. */
function joined(old: Page | null, answer: Page, before: string | undefined): Page {
  if (old === null) return { episodes: answer.episodes, next: answer.next };
  if (before !== undefined) {
    // Pressed twice, or read anew in between: this page goes on from nothing that is shown.
    if (old.next !== before) return old;
    return { episodes: [...old.episodes, ...answer.episodes], next: answer.next };
  }
  const again = new Set(answer.episodes.map(keyOf));
  const rest = old.episodes.filter((one) => !again.has(keyOf(one)));
  const kept = rest.length > 0 && answer.next !== null;
  return {
    episodes: [...answer.episodes, ...(kept ? rest : [])],
    next: kept ? old.next : answer.next,
  };
}

function keyOf({ limiter, lane, id }: Episodes[number]): string {
  return `${limiter} ${lane} ${id}`;
}

function Told({ one }: { one: Episodes[number] }) {
  return (
    <li class={`episode ${one.cause.kind}`}>
      <div class="episode-head">
        <EpisodeWhen {...one} />
        <p>
          <a href={limiterHash(one.limiter)}>
            <Outside text={one.limiter} />
          </a>{' '}
          {one.lane === 'would_be' && <span class="chip">recommended only</span>}{' '}
          <Outside text={withoutName(one.sentence, one.limiter)} />
        </p>
        {one.lane === 'in_force' && (
          <a class="button" href={changeHash(one.limiter, leadOf(one))}>
            See and undo<span class="unseen">: {one.limiter}</span>
          </a>
        )}
      </div>
    </li>
  );
}
