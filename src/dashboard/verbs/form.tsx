/** The one dialog of all that changes something: what it asks for, now and then, a reason, how it is undone. Stage: dashboard. */
import type { ComponentChildren } from 'preact';
import { Modal } from '../parts/modal.jsx';
import { Outside } from '../parts/outside.jsx';
import type { DryRun } from './dry-run.js';
import type { VerbSpec } from './specs.js';
import { formWords } from './words.js';

export interface ChangeFormProps<A> {
  spec: Pick<VerbSpec, 'title' | 'does' | 'about' | 'undo' | 'dangerous'>;
  limiter: string;
  run: DryRun<A>;
  /** What is still to be given, in words; null: nothing. */
  missing: string | null;
  reason: string;
  onReason: (reason: string) => void;
  onClose: () => void;
  /** Of a reason. */
  example?: string;
  /** Fields. */
  children?: ComponentChildren;
  preview: (plan: A) => ComponentChildren;
}

export function ChangeForm<A>(props: ChangeFormProps<A>) {
  const { spec, limiter, run, missing, reason, onReason, onClose, children, preview } = props;
  const { example = 'checkout p99 doubled after the deploy' } = props;
  const submit = (event: Event) => {
    event.preventDefault();
    void run.write();
  };
  return (
    <Modal title={`${spec.title}: ${limiter}`} onClose={onClose}>
      <form class="dialog-form" onSubmit={submit}>
        <p>{spec.about}</p>
        {children}
        <section class="preview" aria-label="Now and then" aria-live="polite">
          {run.moved && (
            <p class="error">
              It changed while you looked; nothing was written. This is the new now and then: look
              again.
            </p>
          )}
          {run.fault !== null ? (
            <p class="error">
              <Outside text={formWords(run.fault)} />
            </p>
          ) : missing !== null ? (
            <p class="soft">{missing}</p>
          ) : run.plan === null ? (
            <p class="soft">Reading what it would do…</p>
          ) : (
            preview(run.plan)
          )}
        </section>
        <div class="field">
          <label for="verb-reason">Why (for the audit log)</label>
          <input
            id="verb-reason"
            maxLength={500}
            autocomplete="off"
            value={reason}
            placeholder={`e.g. ${example}`}
            onInput={(event) => onReason(event.currentTarget.value)}
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
            disabled={!run.mayWrite}
          >
            {run.busy ? 'Writing…' : spec.does}
          </button>
        </div>
      </form>
    </Modal>
  );
}
