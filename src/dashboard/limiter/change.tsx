/** One change: before and after, who, why, and whether the same inputs give the same decision again. Stage: dashboard. */
import type { ExplainAnswer } from '../../api/types.js';
import { withUnit } from '../../view/signal-unit.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { AnswerState } from '../parts/answer.jsx';
import { Heads } from '../parts/heads.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { limiterHash } from '../routing.js';
import { ValuesTable } from '../verbs/preview.jsx';
import { UndoOf, type UndoProps } from './undo.jsx';

export interface ChangeProps extends UndoProps {
  limiter: string;
}

export function Change(props: ChangeProps) {
  const { limiter, change } = props;
  const { epoch, revision } = change;
  const asked = useAnswer(`${limiter} ${epoch}.${revision}`, () =>
    api.explain(limiter, epoch, revision),
  );
  const answer = asked.value;
  return (
    <section class="sheet one-change" aria-label={`Change r${revision}`}>
      <div class="head">
        <h2 class="grow">Change r{revision}</h2>
        <a class="button" href={limiterHash(limiter)}>
          Close
        </a>
      </div>
      <AnswerState asked={asked} reading="Reading it…" />
      {answer !== null && (
        <div class="two">
          <div class="stack">
            <p class="lead">
              <Outside text={answer.entry.sentence} />
            </p>
            <div class="preview">
              {answer.entry.after !== null ? (
                <ValuesTable
                  before={answer.entry.before}
                  after={answer.entry.after}
                  heads={['before', 'after']}
                />
              ) : (
                <p class="soft">It moved no number.</p>
              )}
            </div>
            <UndoOf {...props} entry={answer.entry} />
          </div>
          <div class="stack">
            <dl class="facts">
              <dt>When</dt>
              <dd>
                <Time ms={answer.entry.atMs} />
              </dd>
              <dt>Who</dt>
              <dd>
                <Clipped text={answer.entry.actor.name} focusable />{' '}
                <span class="soft">
                  {answer.entry.actor.kind}
                  {answer.entry.actor.verified ? ', proved by a token' : ''}
                </span>
              </dd>
              {typeof answer.entry.detail?.why === 'string' && (
                <>
                  <dt>Their reason</dt>
                  <dd>
                    <Outside text={answer.entry.detail.why} />
                  </dd>
                </>
              )}
              <dt>Reason code</dt>
              <dd>
                <code>
                  <Outside text={answer.entry.reason} />
                </code>
              </dd>
              {answer.entry.law !== undefined && (
                <>
                  <dt>Law</dt>
                  <dd>
                    <Outside text={answer.entry.law} />
                  </dd>
                </>
              )}
              <dt>Explained</dt>
              <dd>
                <Outside text={ownWords(answer)} />
              </dd>
            </dl>
            {answer.signals.length > 0 && (
              <table>
                <caption class="unseen">What the law saw</caption>
                <Heads
                  titles={['Signal it saw', 'Reading', 'Setpoint']}
                  nums={['Reading', 'Setpoint']}
                />
                <tbody>
                  {answer.signals.map((signal) => (
                    <tr key={signal.signal}>
                      <th scope="row">
                        <Outside text={signal.signal} />
                      </th>
                      <td class="num">
                        {signal.value === null
                          ? (signal.reason ?? '–')
                          : withUnit(signal.value, signal.unit)}
                      </td>
                      <td class="num">
                        {signal.setpoint === null ? '–' : withUnit(signal.setpoint, signal.unit)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {answer.entry.terms !== undefined && (
              <details>
                <summary class="small soft">Every term of the law</summary>
                <dl class="facts terms">
                  {Object.entries(answer.entry.terms).map(([name, value]) => (
                    <div class="pair" key={name}>
                      <dt>
                        <Outside text={name} />
                      </dt>
                      <dd class="num">{number(value)}</dd>
                    </div>
                  ))}
                </dl>
              </details>
            )}
          </div>
        </div>
      )}
    </section>
  );
}

/** Without the sentence of the entry, which stands beside it. */
function ownWords({ sentence, entry }: ExplainAnswer): string {
  const told = ` ${entry.sentence}`;
  return sentence.endsWith(told) ? sentence.slice(0, -told.length) : sentence;
}
