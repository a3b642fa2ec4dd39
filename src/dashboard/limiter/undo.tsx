/** How one change is undone: its button, or in a line why there is none. Stage: dashboard. */
import type { AuditRecord, Verb } from '../../api/types.js';
import { mayWrite, useStore } from '../data/store.js';
import type { ChangeRef } from '../routing.js';
import { VERBS } from '../verbs/specs.js';
import { movedNumber, type Undo } from './told.js';

/** Of these a rollback takes nothing back where they moved no number; they have a way back of their own. */
const OWN_WAY: readonly Verb[] = ['pin', 'rollback', 'freeze', 'trip', 'promote'];

export interface UndoProps {
  change: ChangeRef;
  /** null: nobody may, or there is nowhere to go. */
  undo: Undo | null;
  /** Of the whole episode that it is in the midst of. */
  undoAll: Undo | null;
  /** It set the timed bounds that hold. */
  boundsStand: boolean;
  onVerb: (verb: Verb, to: string) => void;
  onSignIn: () => void;
}

interface UndoOfProps extends UndoProps {
  entry: Pick<AuditRecord, 'before' | 'after' | 'reason' | 'actor'>;
}

export function UndoOf(props: UndoOfProps) {
  const { change, entry, undo, undoAll, boundsStand, onVerb, onSignIn } = props;
  const state = useStore();
  if (state.session === null) return null;
  if (!mayWrite(state)) {
    if (state.session.name !== null) {
      return <p class="soft">Your role only reads: an operator may undo this.</p>;
    }
    return (
      <div class="ends verbs">
        <button type="button" onClick={onSignIn}>
          Sign in to undo this
        </button>
      </div>
    );
  }
  const moved = movedNumber(entry);
  const stood = `${change.epoch}.${change.revision}`;
  const own = entry.actor.kind === 'person' && OWN_WAY.find((verb) => verb === entry.reason);
  return (
    <>
      {!moved && (
        <p class="soft">
          It moved no number (rate, capacity, cap): a rollback of it would take nothing back.
          {own && ` To undo it: ${VERBS[own].undo}`}
        </p>
      )}
      <div class="ends verbs">
        {boundsStand && (
          <button type="button" class="primary" onClick={() => onVerb('bounds', 'end')}>
            End these bounds…
          </button>
        )}
        {moved && undo !== null && (
          <button
            type="button"
            class={boundsStand ? '' : 'primary'}
            onClick={() => onVerb('rollback', undo.to)}
          >
            {undo.words}
          </button>
        )}
        {undoAll !== null && undoAll.to !== undo?.to && (
          <button type="button" onClick={() => onVerb('rollback', undoAll.to)}>
            Roll back to before its episode…
          </button>
        )}
        {undo !== null && undo.to !== stood && entry.after !== null && (
          <button type="button" onClick={() => onVerb('rollback', stood)}>
            Roll back to after this…
          </button>
        )}
      </div>
    </>
  );
}
