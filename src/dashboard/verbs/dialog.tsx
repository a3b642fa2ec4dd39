/** A verb on a limiter: what it asks for, what it would do, a reason, then compare-and-set. Stage: dashboard. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { Verb, VerbAnswer, VerbRequest } from '../../api/types.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { current } from '../data/store.js';
import { useDryRun } from './dry-run.js';
import { Fields } from './fields.jsx';
import { ChangeForm } from './form.jsx';
import { Preview } from './preview.jsx';
import {
  type Draft,
  holdChoices,
  MODES,
  type Mode,
  NO_ENDS,
  requestOf,
  specOf,
  usualHold,
} from './specs.js';
import { pinEnds } from './words.js';

export interface VerbDialogProps {
  limiter: string;
  verb: Verb;
  /** Of a rollback: where to, `epoch.revision`, empty while that is not known; of a promotion: the mode; of bounds: `end` those that hold. */
  to?: string;
  onClose: () => void;
  onDone: (answer: VerbAnswer) => void;
}

export function VerbDialog({ limiter, verb, to = '', onClose, onDone }: VerbDialogProps) {
  const [draft, setDraft] = useState<Draft>({
    ...{ hold: usualHold(verb), holdBreaker: false, rate: '', inFlight: '', reason: '' },
    ...{ ends: NO_ENDS, clear: verb === 'bounds' && to === 'end' },
    ...{ to, mode: to === '' ? 'auto' : modeOf(to), anyway: false },
  });
  const change = (part: Partial<Draft>) => setDraft((old) => ({ ...old, ...part }));
  // What is known late is filled in; what a person has chosen, or looks at, stays.
  useLayoutEffect(() => {
    setDraft((old) => (old.to === '' ? { ...old, to } : old));
  }, [to]);
  const wanted = requestOf(verb, draft);
  const missing = typeof wanted === 'string' ? wanted : null;
  const request = typeof wanted === 'string' ? {} : wanted;
  const dry: VerbRequest = { ...request, dryRun: true };
  // The reason changes nothing of what would happen.
  if (dry.anyway) dry.reason = 'given';
  else delete dry.reason;
  const run = useDryRun<VerbAnswer>({
    question: missing === null ? JSON.stringify(dry) : null,
    ask: () => api.verb(limiter, verb, dry),
    ready: (plan) => plan.status === 'dry_run' && standsOnOf(plan) !== null,
    write: (plan) => api.verb(limiter, verb, { ...request, ...standsOnOf(plan) }),
    onDone,
  });
  const endsOf = ({ status, after }: VerbAnswer) =>
    verb !== 'rollback' || after === null || status === 'nothing'
      ? null
      : pinEnds(
          current().rows.get(limiter)?.holds ?? [],
          `${number(after.rate)}/s`,
          holdChoices(verb)[draft.hold]!.title,
        );
  return (
    <ChangeForm
      {...{ spec: specOf(verb, draft), limiter, run, missing, onClose }}
      reason={draft.reason}
      onReason={(reason) => change({ reason })}
      preview={(plan) => <Preview answer={plan} ends={endsOf(plan)} />}
    >
      <Fields verb={verb} limiter={limiter} draft={draft} onChange={change} />
    </ChangeForm>
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
