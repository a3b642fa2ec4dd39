/** Policies: what is adopted, what waits or has drifted, and who owns each number; one opens to its plan and versions. Stage: dashboard. */
import type { PoliciesAnswer } from '../../api/types.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { AnswerState } from '../parts/answer.jsx';
import { Glyph } from '../parts/glyph.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { policyHash } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { PolicyPage } from './policy.jsx';
import { type Plan, Stands } from './stands.jsx';

/** A plan reads policy and log of every limiter. */
const PLAN_EVERY_MS = 30_000;

export function PoliciesPage({ name }: { name: string | null }) {
  const asked = useAnswer('policies', api.policies, { everyMs: PLAN_EVERY_MS });
  const answer = asked.value;
  const plans = answer?.limiters ?? [];
  const wrong =
    (answer?.faults.length ?? 0) + plans.filter(({ action }) => action === 'refuse').length;
  useTitle(`${wrong > 0 ? `${wrong} wrong · ` : ''}Policies · Flyball`);
  if (name !== null) {
    return <PolicyPage name={name} plan={plans.find(({ limiter }) => limiter === name) ?? null} />;
  }
  return (
    <>
      <div class="head">
        <h1>Policies</h1>
        <p class="soft">The files of the daemon that answers, against what is adopted in Redis.</p>
      </div>
      <AnswerState asked={asked} reading="Reading them…" />
      {answer !== null && answer.faults.length > 0 && <Faults faults={answer.faults} />}
      {answer?.warnings.map((warning) => (
        <p key={warning} class="state look">
          <Glyph shape="look" />
          <Outside text={warning} />
        </p>
      ))}
      {answer === null ? null : plans.length === 0 ? (
        <p class="empty">No policy is adopted, and this daemon has no file of one.</p>
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
                </tr>
              </thead>
              <tbody>
                {plans.map((plan) => (
                  <PlanRow key={plan.limiter} plan={plan} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

function PlanRow({ plan }: { plan: Plan }) {
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
        {mode?.inForce ?? 'none'}
        {mode !== null && mode.owner === 'person' && <span class="chip held">by a person</span>}
      </td>
      <td data-label="file">
        {plan.file === null ? (
          <span class="soft">none here</span>
        ) : (
          <Outside text={fileName(plan.file)} />
        )}
      </td>
      <td data-label="adopted">
        <code>{plan.adopted === null ? 'nothing' : plan.adopted.slice(0, 12)}</code>
      </td>
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
