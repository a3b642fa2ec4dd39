/** One policy: who owns each number, what its file would change, its drift, its versions, and its mode. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { Owner } from '../../view/plan-owners.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { mayApply, mayWrite, useStore } from '../data/store.js';
import { AnswerState } from '../parts/answer.jsx';
import { Done } from '../parts/done.jsx';
import { Heads } from '../parts/heads.jsx';
import { Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { changeHash, limiterHash } from '../routing.js';
import { VerbDialog } from '../verbs/dialog.jsx';
import { waits } from './apply.jsx';
import { FieldChanges, numberName } from './changes.jsx';
import { type Plan, Stands } from './stands.jsx';

export interface PolicyPageProps {
  name: string;
  plan: Plan | null;
  /** What was done to it just now. */
  done: string | null;
  onDone: (sentence: string) => void;
  onApply: (plan: Plan) => void;
}

export function PolicyPage({ name, plan, done, onDone, onApply }: PolicyPageProps) {
  const state = useStore();
  const [promoting, setPromoting] = useState(false);
  const limiter = useAnswer(name, () => api.limiter(name), { turn: `${plan?.revision ?? ''}` });
  const history = useAnswer(name, () => api.policyHistory(name), {
    turn: plan?.adopted ?? '',
  });
  const adopted = limiter.value?.policy ?? null;
  return (
    <>
      <div class="head">
        <h1>
          Policy of <Outside text={name} />
        </h1>
        {plan !== null && <Stands plan={plan} />}
        {plan?.mode != null && <span class="chip">mode {plan.mode.inForce}</span>}
        <span class="grow" />
        <a class="button" href={limiterHash(name)}>
          Its limiter
        </a>
        {plan !== null && waits(plan) && mayApply(state) && (
          <button type="button" class="primary verbs" onClick={() => onApply(plan)}>
            Apply its file…
          </button>
        )}
        {mayWrite(state) && (
          <button type="button" class="verbs" onClick={() => setPromoting(true)}>
            Change its mode…
          </button>
        )}
      </div>
      <Done text={done} />
      {plan !== null && <Owners plan={plan} />}
      {plan !== null && (plan.fields.length > 0 || plan.drift.length > 0) && (
        <Changes plan={plan} mayApply={mayApply(state)} />
      )}
      <section class="sheet" aria-label="Versions">
        <h2>Versions</h2>
        <AnswerState asked={history} reading="Reading them…" />
        {history.value !== null && (
          <ul class="changes">
            {history.value.versions.map((version) => (
              <li key={`${version.hash} ${version.atMs}`} class="version">
                <a href={changeHash(name, version)}>r{version.revision}</a>{' '}
                <Time ms={version.atMs} /> <code>{version.hash.slice(0, 12)}</code>{' '}
                {version.adopted && <span class="chip">adopted</span>}
                {version.replaced && <span class="chip held">replaced by a person</span>}{' '}
                <span class="soft">
                  by <Outside text={version.by} />
                </span>
                {version.text !== null && (
                  <details>
                    <summary class="small soft">Its file</summary>
                    <pre>
                      <Text text={version.text} />
                    </pre>
                  </details>
                )}
              </li>
            ))}
          </ul>
        )}
      </section>
      {adopted !== null && (
        <section class="sheet" aria-label="Adopted policy">
          <details>
            <summary>
              <strong>The adopted policy, whole</strong>
            </summary>
            <pre>
              <Text text={JSON.stringify(adopted, null, 2)} />
            </pre>
          </details>
        </section>
      )}
      {promoting && (
        <VerbDialog
          limiter={name}
          verb="promote"
          onClose={() => setPromoting(false)}
          onDone={(answer) => {
            setPromoting(false);
            onDone(answer.sentence);
            limiter.again();
          }}
        />
      )}
    </>
  );
}

/** Whole, line by line, each inert. */
function Text({ text }: { text: string }) {
  return (
    <>
      {text.split('\n').map((line, i) => (
        <span key={i}>
          <Outside text={line} />
          {'\n'}
        </span>
      ))}
    </>
  );
}

const OWNERS: Record<Owner, string> = {
  policy: 'the policy',
  law: 'the law',
  tuning: 'tuning',
  window: 'a window of its schedule',
  person: 'a person',
  nobody: 'nobody: it has drifted',
};

function Owners({ plan }: { plan: Plan }) {
  return (
    <section class="sheet" aria-label="Who owns what">
      <h2>Who owns what is in force</h2>
      <div class="scrolled stacked">
        <table>
          <Heads
            titles={['Number', 'In force', 'By its file', 'Owner']}
            nums={['In force', 'By its file']}
          />
          <tbody>
            {plan.numbers.map((one) => (
              <tr key={one.name}>
                <th scope="row">{numberName(one.name)}</th>
                <td class="num" data-label="in force">
                  {one.inForce === null ? '–' : number(one.inForce)}
                </td>
                <td class="num" data-label="by its file">
                  {one.planned === null ? '–' : number(one.planned)}
                </td>
                <td class="broad">
                  {OWNERS[one.owner]}
                  {one.by !== null && (
                    <>
                      : <Outside text={one.by} />
                    </>
                  )}
                  {one.untilMs !== null && (
                    <>
                      , until <Time ms={one.untilMs} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {plan.sentence !== null && (
        <p class="sentence">
          <Outside text={plan.sentence} />
        </p>
      )}
      {plan.warnings.map((warning) => (
        <p key={warning} class="state look">
          <Outside text={warning} />
        </p>
      ))}
    </section>
  );
}

function Changes({ plan, mayApply }: { plan: Plan; mayApply: boolean }) {
  return (
    <section class="sheet" aria-label="Plan and drift">
      <h2>What would change</h2>
      <FieldChanges plan={plan} />
      {waits(plan) && !mayApply && (
        <p class="soft small">
          <code>flyball apply</code> adopts it, or an admin here.
        </p>
      )}
    </section>
  );
}
