/** A verb: what it asks for, what it would do (asked again with each answer), a reason, then compare-and-set. Stage: dashboard. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { Verb, VerbAnswer, VerbRequest } from '../../api/types.js';
import { ApiError, api } from '../client.js';
import { refusedWords } from '../data/session.js';
import { Modal } from '../parts/modal.jsx';
import { Outside } from '../parts/outside.jsx';
import { Fields } from './fields.jsx';
import { Preview } from './preview.jsx';
import { type Draft, MODES, type Mode, NO_ENDS, requestOf, usualHold, VERBS } from './specs.js';

/** After so long without a key the preview is asked for. */
const PREVIEW_AFTER_MS = 250;

export interface VerbDialogProps {
  limiter: string;
  verb: Verb;
  /** Of a rollback: where to, `epoch.revision`; of a promotion: the mode. */
  to?: string;
  onClose: () => void;
  onDone: (answer: VerbAnswer) => void;
}

export function VerbDialog({ limiter, verb, to = '', onClose, onDone }: VerbDialogProps) {
  const spec = VERBS[verb];
  const [draft, setDraft] = useState<Draft>({
    ...{ hold: usualHold(verb), holdBreaker: false, rate: '', inFlight: '', reason: '' },
    ...{ ends: NO_ENDS, clear: false },
    ...{ to, mode: to === '' ? 'auto' : modeOf(to), anyway: false },
  });
  const [planned, setPlanned] = useState<{ of: string; answer: VerbAnswer } | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [moved, setMoved] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  const request = requestOf(verb, draft);
  // The reason changes nothing of what would happen.
  const asked =
    typeof request === 'string'
      ? request
      : JSON.stringify({ ...request, reason: request.anyway ? 'given' : undefined });

  // Of another question it is no plan: Enter right after a key must not write what was never shown.
  const of = `${turn} ${asked}`;
  const plan = planned?.of === of ? planned.answer : null;

  useLayoutEffect(() => {
    setFault(null);
    if (typeof request === 'string') return;
    let wanted = true;
    const timer = setTimeout(() => {
      const dry: VerbRequest = { ...request, dryRun: true };
      if (!dry.anyway) delete dry.reason;
      api.verb(limiter, verb, dry).then(
        (answer) => wanted && setPlanned({ of, answer }),
        (error) => wanted && setFault(refusedWords(error)),
      );
    }, PREVIEW_AFTER_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [of, limiter, verb]);

  const write = async (event: Event) => {
    event.preventDefault();
    if (typeof request === 'string' || plan?.status !== 'dry_run' || busy) return;
    const standsOn = standsOnOf(plan);
    if (standsOn === null) return;
    setBusy(true);
    setMoved(null);
    try {
      const answer = await api.verb(limiter, verb, { ...request, ...standsOn });
      onDone(answer);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        setMoved(
          'It changed while you looked; nothing was written. This is the new now and then: look again.',
        );
        setTurn((n) => n + 1);
      } else setFault(refusedWords(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Modal title={`${spec.title}: ${limiter}`} onClose={onClose}>
      <form class="dialog-form" onSubmit={write}>
        <p>{spec.about}</p>
        <Fields
          verb={verb}
          limiter={limiter}
          draft={draft}
          onChange={(part) => setDraft((old) => ({ ...old, ...part }))}
        />
        <section class="preview" aria-label="Now and then" aria-live="polite">
          {moved !== null && <p class="error">{moved}</p>}
          {fault !== null ? (
            <p class="error">
              <Outside text={fault} />
            </p>
          ) : typeof request === 'string' ? (
            <p class="soft">{request}</p>
          ) : plan === null ? (
            <p class="soft">Reading what it would do…</p>
          ) : (
            <Preview answer={plan} />
          )}
        </section>
        <div class="field">
          <label for="verb-reason">Why (for the audit log)</label>
          <input
            id="verb-reason"
            maxLength={500}
            autocomplete="off"
            value={draft.reason}
            placeholder="e.g. checkout p99 doubled after the deploy"
            onInput={(event) => setDraft((old) => ({ ...old, reason: event.currentTarget.value }))}
          />
        </div>
        <p class="undo">
          <strong>To undo:</strong> {spec.undo}
        </p>
        <div class="ends">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={`primary ${spec.dangerous ? 'risky' : ''}`}
            disabled={plan?.status !== 'dry_run' || busy}
          >
            {busy ? 'Writing…' : spec.does}
          </button>
        </div>
      </form>
    </Modal>
  );
}

function modeOf(to: string): Mode {
  return MODES.find((mode) => mode === to) ?? 'file';
}

/** What a yes to this plan stands on: its basis, which what the autopilot moves besides leaves alone, else its revision. */
function standsOnOf({ basis, epoch, revision }: VerbAnswer): VerbRequest | null {
  if (basis !== null) return { basis };
  return epoch === null || revision === null ? null : { epoch, revision };
}
