/** One limiter: what needs a person, what it did, what happened, and the verbs to change it. Stage: dashboard. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AuditRecord, Verb, VerbAnswer } from '../../api/types.js';
import { Charts } from '../charts/charts.jsx';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { pageTitle, worstAttention } from '../data/attention.js';
import { wordsOf } from '../data/session.js';
import { mayWrite, nowMs, useStore } from '../data/store.js';
import { AnswerState } from '../parts/answer.jsx';
import { Done } from '../parts/done.jsx';
import { StateBadge } from '../parts/glyph.jsx';
import { Outside, outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import type { ChangeRef } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { VerbDialog } from '../verbs/dialog.jsx';
import { Actions } from './actions.jsx';
import { Change } from './change.jsx';
import { Now } from './now.jsx';
import { Signals } from './signals.jsx';
import { Story } from './story.jsx';
import {
  boundsStand,
  episodeOf,
  firstOf,
  movedNumber,
  newestOf,
  storyOf,
  undoOf,
  withNew,
} from './told.js';
import { TopSubjects } from './top.jsx';

const PAGE = 200;

export interface LimiterPageProps {
  name: string;
  change: ChangeRef | null;
  onSignIn: () => void;
}

export function LimiterPage({ name, change, onSignIn }: LimiterPageProps) {
  const state = useStore();
  const view = state.rows.get(name) ?? null;
  const asked = useAnswer(name, () => api.limiter(name), { everyMs: 5000 });
  const read = asked.value?.limiter.revision;
  const seen = view?.revision;
  useEffect(() => {
    // Asked for as the stream was opened, it usually is of the revision that the stream tells of.
    if (read !== undefined && seen !== undefined && read !== seen) asked.again();
  }, [read, seen]);
  const shown = view ?? asked.value?.limiter ?? null;
  const log = useLog(name, state.entries);
  const [doing, setDoing] = useState<{ verb: Verb; to?: string } | null>(null);
  const [done, setDone] = useState<{ answer: VerbAnswer; atMs: number } | null>(null);
  const told = useMemo(() => storyOf(log.entries, nowMs(), log.more), [log.entries, log.more]);
  const attention = shown === null ? null : worstAttention(shown, nowMs());
  const wrong =
    attention !== null && attention.level !== 'well' ? [{ name, words: attention.words }] : [];
  useTitle(wrong.length > 0 ? pageTitle('Limiter', wrong) : `${name} · Flyball`);

  if (shown === null) {
    return (
      <>
        <h1>
          <Outside text={name} />
        </h1>
        <AnswerState asked={asked} reading="Reading it…" />
      </>
    );
  }
  const undo = (of: ChangeRef) => (mayWrite(state) ? undoOf(log.entries, of) : null);
  const onRollback = (to: string) => setDoing({ verb: 'rollback', to });
  const undoAll = (of: ChangeRef) => {
    const around = episodeOf(told, of);
    return around?.entries.some(movedNumber) ? undo(firstOf(around.episode)) : null;
  };
  // Known once the log is read, which may be after the button was pressed.
  const row = { epoch: shown.epoch ?? 0, revision: shown.revision ?? 0 };
  const usual = undo(newestOf(log.entries, row))?.to;
  return (
    <>
      <div class="head">
        <h1>
          <Outside text={name} />
        </h1>
        <StateBadge view={shown} />
        <span class="chip">mode {shown.mode ?? 'none'}</span>
        <span class="soft grow">
          {shown.revision === null ? '' : `revision ${shown.revision}`}
          {shown.group !== null && (
            <>
              , group <Outside text={shown.group} />
            </>
          )}
        </span>
        <Actions view={shown} onVerb={(verb) => setDoing({ verb })} />
      </div>
      <Done text={done?.answer.sentence ?? null} lead={done !== null && <DoneAt {...done} />} />
      {change !== null && (
        <Change
          {...{ limiter: name, change, onSignIn }}
          undo={undo(change)}
          undoAll={undoAll(change)}
          boundsStand={boundsStand(log.entries, change, shown.holds)}
          onVerb={(verb, to) => setDoing({ verb, to })}
        />
      )}
      <Now view={shown} answer={asked.value} />
      <Charts limiter={name} />
      <Signals limiter={name} />
      <section class="sheet" aria-label="What happened">
        <h2>What happened</h2>
        {told.length > 0 && (
          <Story limiter={name} told={told} undo={undo} onRollback={onRollback} />
        )}
        {told.length === 0 && (
          <p class="soft">
            {log.reading ? 'Reading it…' : 'Nothing was changed as far as the log goes back.'}
          </p>
        )}
        {log.fault !== null && <p class="error">{outside(log.fault)}</p>}
        {log.more && (
          <button type="button" onClick={log.older}>
            Older
          </button>
        )}
      </section>
      <TopSubjects limiter={name} />
      {doing !== null && (
        <VerbDialog
          limiter={name}
          verb={doing.verb}
          to={doing.to ?? (doing.verb === 'rollback' ? usual : undefined) ?? ''}
          onClose={() => setDoing(null)}
          onDone={(answer) => {
            setDoing(null);
            setDone({ answer, atMs: nowMs() });
          }}
        />
      )}
    </>
  );
}

function DoneAt({ answer: { revision }, atMs }: { answer: VerbAnswer; atMs: number }) {
  return (
    <>
      Done at <Time ms={atMs} />
      {revision === null ? '' : `, revision ${revision}`}:{' '}
    </>
  );
}

/** The audit log, newest first: read page by page, with what comes live. After a lost stream it is read again. */
function useLog(name: string, live: readonly AuditRecord[]) {
  const [read, setRead] = useState<{
    name: string;
    entries: AuditRecord[];
    next: string | null;
  } | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const wanted = useRef(name);
  wanted.current = name;
  const { connection } = useStore();
  const alive = connection.kind === 'live';
  const take = async (cursor?: string) => {
    try {
      const query = {
        limit: PAGE,
        kind: 'change' as const,
        ...(cursor === undefined ? {} : { before: cursor }),
      };
      const page = await api.audit(name, query);
      if (wanted.current !== name) return;
      setRead((old) => {
        if (cursor === undefined || old === null) return { name, ...page };
        // Pressed twice, or read anew in between: this page goes on from nothing that is shown.
        if (old.next !== cursor) return old;
        return { name, entries: [...old.entries, ...page.entries], next: page.next };
      });
      setFault(null);
    } catch (error) {
      setFault(wordsOf(error));
    }
  };
  useEffect(() => {
    void take();
  }, [name, alive]);
  const own = read?.name === name ? read : null;
  const entries = useMemo(
    () =>
      withNew(
        own?.entries ?? [],
        live.filter((entry) => entry.limiter === name && entry.kind === 'change'),
      ),
    [own, live, name],
  );
  return {
    entries,
    fault,
    reading: own === null && fault === null,
    more: own !== null && own.next !== null,
    older: () => void take(own?.next ?? undefined),
  };
}
