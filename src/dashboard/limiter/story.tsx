/** What happened: episodes, each with its changes; a change opens to its diff and to why. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { AuditRecord } from '../../api/types.js';
import { span } from '../../view/text.js';
import { Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { type ChangeRef, changeHash } from '../routing.js';
import type { Told } from './told.js';

export interface StoryProps {
  limiter: string;
  told: readonly Told[];
  /** Where a rollback of a change would go; null: nothing older is known, or nobody may. */
  rollbackTo: (change: ChangeRef) => string | null;
  onRollback: (to: string) => void;
}

export function Story({ limiter, told, rollbackTo, onRollback }: StoryProps) {
  return (
    <ol class="story">
      {told.map(({ episode, entries }, i) => (
        <li key={episode.id} class={`episode ${episode.cause.kind}`}>
          <div class="episode-head">
            <span class="when">
              <Time ms={episode.fromMs} />
              {episode.toMs - episode.fromMs >= 1000 && (
                <span class="soft">, {span(episode.toMs - episode.fromMs)}</span>
              )}
              {episode.open && <span class="chip warn">goes on</span>}
            </span>
            <p>
              <Outside text={episode.sentence} />
            </p>
            <Undo
              first={{ epoch: episode.epoch, revision: episode.firstRevision }}
              rollbackTo={rollbackTo}
              onRollback={onRollback}
            />
          </div>
          <Changes limiter={limiter} entries={entries} open={i === 0 && entries.length <= 6} />
        </li>
      ))}
    </ol>
  );
}

function Undo({
  first,
  rollbackTo,
  onRollback,
}: { first: ChangeRef } & Pick<StoryProps, 'rollbackTo' | 'onRollback'>) {
  const to = rollbackTo(first);
  if (to === null) return null;
  return (
    <button type="button" class="verbs" onClick={() => onRollback(to)}>
      Roll back to before this…
    </button>
  );
}

/** Drawn when looked at: a log may have hundreds. */
function Changes({
  limiter,
  entries,
  open: first,
}: {
  limiter: string;
  entries: readonly AuditRecord[];
  open: boolean;
}) {
  const [open, setOpen] = useState(first);
  return (
    <details open={first} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="small soft">
        {entries.length} {entries.length === 1 ? 'change' : 'changes'}
      </summary>
      {open && (
        <ul class="changes">
          {entries.map((entry) => (
            <li key={entry.id}>
              <a class="change" href={changeHash(limiter, entry)}>
                <b>r{entry.revision}</b>
                <Time ms={entry.atMs} still />
                <span class={`chip ${entry.actor.kind === 'person' ? 'held' : ''}`}>
                  <Outside text={entry.reason} />
                </span>
                <span class="said">
                  <Outside text={entry.sentence} />
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}
