/** The verbs of a limiter as buttons: those that make sense now; one opens its dialog. Stage: dashboard. */
import type { Verb } from '../../api/types.js';
import type { StatusView } from '../../view/status.js';
import { mayWrite, useStore } from '../data/store.js';

/** Held things can be let go, open ones reset; the rest can always be asked for. Pure. */
function verbsNow(view: StatusView): Verb[] {
  if (!view.managed) return [];
  const holds = new Set(view.holds.map(({ kind }) => kind));
  return [
    'rollback',
    ...(holds.has('pinned') ? (['release'] as const) : []),
    'pin',
    holds.has('frozen') ? 'thaw' : 'freeze',
    'bounds',
    view.state === 'closed' || view.state === 'recovering' ? 'trip' : 'reset',
    ...(view.mode === 'recommend' && view.wouldBe !== null ? (['approve'] as const) : []),
    ...(view.mode === 'shadow' || view.mode === 'recommend' ? (['promote'] as const) : []),
  ];
}

const WORDS: Record<Verb, string> = {
  rollback: 'Roll back…',
  pin: 'Pin…',
  release: 'Release…',
  freeze: 'Freeze…',
  thaw: 'Thaw…',
  bounds: 'Bounds…',
  trip: 'Trip…',
  reset: 'Reset…',
  approve: 'Approve…',
  promote: 'Promote…',
};

/** A verb and its undoing are one button in one place: who pressed it by a key stays on it. */
const PLACES: Partial<Record<Verb, Verb>> = { thaw: 'freeze', reset: 'trip' };

export function Actions({ view, onVerb }: { view: StatusView; onVerb: (verb: Verb) => void }) {
  const state = useStore();
  // Rows may be there before it is known who looks at them.
  if (!view.managed || state.session === null) return null;
  if (!mayWrite(state)) {
    const who =
      state.session.name === null
        ? 'Sign in as operator to change anything.'
        : 'Your role only reads.';
    return <span class="chip held verbs">Read-only. {who}</span>;
  }
  return (
    <fieldset class="actions verbs">
      <legend class="unseen">Change it</legend>
      {verbsNow(view).map((verb) => (
        <button
          key={PLACES[verb] ?? verb}
          type="button"
          class={
            verb === 'trip'
              ? 'danger'
              : verb === 'release' || verb === 'reset' || verb === 'thaw'
                ? 'primary'
                : ''
          }
          onClick={() => onVerb(verb)}
        >
          {WORDS[verb]}
        </button>
      ))}
    </fieldset>
  );
}
