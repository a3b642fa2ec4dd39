/** Policies: what is adopted, what waits or has drifted, and who owns each number; one opens to its plan and versions. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { PoliciesAnswer } from '../../api/types.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { mayApply, useStore } from '../data/store.js';
import { AnswerState } from '../parts/answer.jsx';
import { Done } from '../parts/done.jsx';
import { Glyph } from '../parts/glyph.jsx';
import { Clipped, Outside, outside } from '../parts/outside.jsx';
import { policyHash } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { ApplyDialog, waits } from './apply.jsx';
import { PolicyPage } from './policy.jsx';
import { type Plan, Stands } from './stands.jsx';

/** A plan reads policy and log of every limiter. */
const PLAN_EVERY_MS = 30_000;

export function PoliciesPage({ name }: { name: string | null }) {
  const state = useStore();
  const asked = useAnswer('policies', api.policies, { everyMs: PLAN_EVERY_MS });
  const answer = asked.value;
  const plans = answer?.limiters ?? [];
  const wrong =
    (answer?.faults.length ?? 0) + plans.filter(({ action }) => action === 'refuse').length;
  const [applying, setApplying] = useState<Plan | null>(null);
  const [done, setDone] = useState<{ limiter: string; sentence: string } | null>(null);
  useTitle(`${wrong > 0 ? `${wrong} wrong · ` : ''}Policies · Flyball`);
  const dialog = applying !== null && (
    <ApplyDialog
      plan={applying}
      onClose={() => setApplying(null)}
      onDone={({ limiter, sentence }) => {
        setApplying(null);
        setDone({ limiter, sentence });
        asked.again();
      }}
    />
  );
  if (name !== null) {
    return (
      <>
        <PolicyPage
          key={name}
          name={name}
          plan={plans.find(({ limiter }) => limiter === name) ?? null}
          done={done?.limiter === name ? done.sentence : null}
          onDone={(sentence) => {
            setDone({ limiter: name, sentence });
            asked.again();
          }}
          onApply={setApplying}
        />
        {dialog}
      </>
    );
  }
  return (
    <>
      <div class="head">
        <h1>Policies</h1>
        <p class="soft">The files of the daemon that answers, against what is adopted in Redis.</p>
      </div>
      <Done text={done === null ? null : `${done.limiter}: ${done.sentence}`} />
      <AnswerState asked={asked} reading="Reading them…" />
      {answer !== null && answer.faults.length > 0 && <Faults faults={answer.faults} />}
      {answer?.warnings.map((warning) => (
        <p key={warning} class="state look">
          <Glyph shape="look" />
          <Outside text={warning} />
        </p>
      ))}
      {answer === null ? null : plans.length === 0 ? (
        <p class="empty">
          No policy is adopted, and this daemon has no file of one. <code>flyball init</code> writes
          one into the folder that the daemon reads.
        </p>
      ) : (
        <section class="sheet" aria-label="Policies by limiter">
          <div class="scrolled stacked">
            <table>
              <thead>
                <tr>
                  <th scope="col">Limiter</th>
                  <th scope="col">Stands</th>
                  <th scope="col">Mode</th>
                  <th scope="col">File</th>
                  <th scope="col">Adopted</th>
                  {mayApply(state) && (
                    <th scope="col">
                      <span class="unseen">Apply</span>
                    </th>
                  )}
                </tr>
              </thead>
              <tbody>
                {plans.map((plan) => (
                  <PlanRow
                    key={plan.limiter}
                    plan={plan}
                    onApply={mayApply(state) ? setApplying : null}
                  />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {dialog}
    </>
  );
}

interface PlanRowProps {
  plan: Plan;
  /** null: this caller may not. */
  onApply: ((plan: Plan) => void) | null;
}

function PlanRow({ plan, onApply }: PlanRowProps) {
  const { mode } = plan;
  return (
    <tr>
      <th scope="row">
        <a href={policyHash(plan.limiter)}>
          <Clipped text={plan.limiter} />
        </a>
      </th>
      <td class="broad">
        <Stands plan={plan} />
        {plan.drift.length > 0 && <span class="soft small"> {plan.drift.length} drifted</span>}
      </td>
      <td data-label="mode">
        {mode?.inForce ?? 'none'}{' '}
        {mode !== null && mode.owner === 'person' && <span class="chip held">by a person</span>}
      </td>
      <td data-label="file">
        {plan.file === null ? (
          <span class="soft">none here</span>
        ) : (
          <Clipped text={fileName(plan.file)} focusable />
        )}
      </td>
      <td data-label="adopted">
        <code>{plan.adopted === null ? 'nothing' : plan.adopted.slice(0, 12)}</code>
      </td>
      {onApply !== null && (
        <td class="broad ends">
          {waits(plan) && (
            <button type="button" class="small" onClick={() => onApply(plan)}>
              Apply…<span class="unseen"> the file of {outside(plan.limiter)}</span>
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

function Faults({ faults }: { faults: PoliciesAnswer['faults'] }) {
  return (
    <section class="sheet" aria-label="Files that do not load">
      <h2 class="state act">
        <Glyph shape="act" />
        Files that do not load; what is adopted stays in force
      </h2>
      <ul>
        {faults.map((fault) => (
          <li key={`${fault.file} ${fault.field} ${fault.message}`}>
            <b>
              <Outside
                text={`${fileName(fault.file)}${fault.line === undefined ? '' : `:${fault.line}`}`}
              />
            </b>{' '}
            <Outside text={`${fault.field} ${fault.message}`} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function fileName(path: string): string {
  return path.split('/').at(-1) ?? path;
}
