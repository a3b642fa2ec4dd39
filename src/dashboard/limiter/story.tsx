/** What happened: episodes, each with its changes; a change opens to its diff and to why. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { AuditRecord } from '../../api/types.js';
import { EpisodeWhen } from '../parts/episode-when.jsx';
import { Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { type ChangeRef, changeHash } from '../routing.js';
import { firstOf, movedNumber, type Told, type Undo } from './told.js';

export interface StoryProps {
  limiter: string;
  told: readonly Told[];
  /** null: nobody may, or there is nowhere to go. */
  undo: (change: ChangeRef) => Undo | null;
  onRollback: (to: string) => void;
}

export function Story({ limiter, told, undo, onRollback }: StoryProps) {
  return (
    <ol class="story">
      {told.map(({ episode, entries }, i) => (
        <li key={episode.id} class={`episode ${episode.cause.kind}`}>
          <div class="episode-head">
            <EpisodeWhen {...episode} />
            <p>
              <Outside text={episode.sentence} />
            </p>
            <UndoButton
              undo={entries.some(movedNumber) ? undo(firstOf(episode)) : null}
              onRollback={onRollback}
            />
          </div>
          <Changes limiter={limiter} entries={entries} open={i === 0 && entries.length <= 6} />
        </li>
      ))}
    </ol>
  );
}

function UndoButton({ undo, onRollback }: { undo: Undo | null } & Pick<StoryProps, 'onRollback'>) {
  if (undo === null) return null;
  return (
    <button type="button" class="verbs" onClick={() => onRollback(undo.to)}>
      {undo.words}
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
                <span class="said">
                  <Outside text={entry.sentence} />
                </span>
                <span class={`chip ${entry.actor.kind === 'person' ? 'held' : ''}`}>
                  <Outside text={entry.reason} />
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}
