/** Adopts a policy's file: what would change, for all or for a part of the subjects first, a reason, then compare-and-set. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { ApplyAnswer, ApplyRequest } from '../../api/types.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { Notes } from '../parts/notes.jsx';
import { NowThen } from '../parts/now-then.jsx';
import { Outside } from '../parts/outside.jsx';
import { useDryRun } from '../verbs/dry-run.js';
import { ChangeForm } from '../verbs/form.jsx';
import { FieldChanges, numberName } from './changes.jsx';
import type { Plan } from './stands.jsx';

const SPEC = {
  title: 'Apply its file',
  does: 'Adopt it',
  about:
    'Adopts the file as this daemon reads it: from then on the autopilot acts by it. Other daemons with other files report that they differ.',
  undo: 'Roll the limiter back to the revision before this one, or apply the file as it was.',
};

/** Of a part first: the numbers of the others stay until it has proved itself. */
const REACHES: readonly { title: string; percent: number | null }[] = [
  { title: 'for all at once', percent: null },
  { title: 'for 5 % of the subjects first, judged after 10 minutes', percent: 5 },
  { title: 'for 25 % of the subjects first, judged after 10 minutes', percent: 25 },
];

/** Would adopting its file change anything? */
export function waits({ action }: Plan): boolean {
  return action === 'create' || action === 'change' || action === 'mend';
}

export interface ApplyDialogProps {
  plan: Plan;
  onClose: () => void;
  onDone: (answer: ApplyAnswer) => void;
}

export function ApplyDialog({ plan: { limiter, action }, onClose, onDone }: ApplyDialogProps) {
  const [reason, setReason] = useState('');
  const [reach, setReach] = useState(0);
  const { percent } = REACHES[reach]!;
  const request: ApplyRequest = percent === null ? {} : { canaryPercent: percent };
  const run = useDryRun<ApplyAnswer>({
    question: JSON.stringify(request),
    ask: () => api.apply(limiter, { ...request, dryRun: true }),
    ready: ({ status, basis }) => status === 'dry_run' && basis !== null,
    write: ({ basis }) => {
      const why = reason.trim() === '' ? {} : { reason: reason.trim() };
      return api.apply(limiter, { ...request, ...why, ...(basis === null ? {} : { basis }) });
    },
    onDone,
  });
  return (
    <ChangeForm
      example="the sale on Friday"
      {...{ spec: SPEC, limiter, run, missing: null, reason, onReason: setReason, onClose }}
      preview={(answer) => <Preview answer={answer} />}
    >
      {action === 'change' && (
        <div class="field">
          <label for="apply-reach">For whom</label>
          <select
            id="apply-reach"
            value={reach}
            onChange={(event) => setReach(Number(event.currentTarget.value))}
          >
            {REACHES.map(({ title }, i) => (
              <option key={title} value={i}>
                {title}
              </option>
            ))}
          </select>
        </div>
      )}
    </ChangeForm>
  );
}

function Preview({ answer: { plan, sentence } }: { answer: ApplyAnswer }) {
  return (
    <>
      <Numbers plan={plan} />
      {plan.fields.length + plan.drift.length > 0 && (
        <>
          <h3 class="sentence">In the policy</h3>
          <FieldChanges plan={plan} />
        </>
      )}
      <p class="sentence">
        <Outside text={sentence} />
      </p>
      <Notes notes={plan.warnings} />
    </>
  );
}

/** In force now and then: a policy that the law moves within keeps what it has found. */
function Numbers({ plan }: { plan: ApplyAnswer['plan'] }) {
  const said = (value: number | null) => (value === null ? 'none' : number(value));
  const rows = [
    ...(plan.mode === null
      ? []
      : [['mode', plan.mode.inForce ?? 'none', plan.mode.planned ?? 'none'] as const]),
    ...plan.numbers.map(
      ({ name, inForce, planned }) => [numberName(name), said(inForce), said(planned)] as const,
    ),
  ];
  if (rows.length === 0) return null;
  return <NowThen rows={rows} heads={['now', 'then']} />;
}
