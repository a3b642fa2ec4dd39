/** Who takes the most, or is denied the most, in the last five minutes. Stage: dashboard. */
import { useState } from 'preact/hooks';
import type { TopSubject } from '../../report/top-window.js';
import { number } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { AnswerState } from '../parts/answer.jsx';
import { Heads } from '../parts/heads.jsx';
import { Clipped } from '../parts/outside.jsx';

export function TopSubjects({ limiter }: { limiter: string }) {
  const [by, setBy] = useState<'taken' | 'denied'>('taken');
  const asked = useAnswer(limiter, () => api.top(limiter, by), { turn: by, everyMs: 5000 });
  const answer = asked.value;
  // Until the other answer is there, the old one is shown as what it is.
  const counted = answer?.by ?? by;
  const countOf = (one: TopSubject) => (counted === 'taken' ? one.tokens : one.denied) ?? 0;
  const count = `${counted === 'taken' ? 'Tokens' : 'Denials'}, 5 min`;
  const most = Math.max(1, ...(answer?.subjects ?? []).map(countOf));
  return (
    <section class="sheet" aria-label="Top subjects">
      <div class="head">
        <h2 class="grow">Top subjects</h2>
        <fieldset class="choice">
          <legend class="unseen">Counted by</legend>
          {(['taken', 'denied'] as const).map((one) => (
            <label key={one} class={one === by ? 'is-on' : ''}>
              <input type="radio" name="top-by" checked={one === by} onChange={() => setBy(one)} />
              {one}
            </label>
          ))}
        </fieldset>
      </div>
      <AnswerState asked={asked} reading="Reading them…" />
      {answer === null ? null : answer.subjects.length === 0 ? (
        <p class="soft">None in the last five minutes.</p>
      ) : (
        <table class="top-subjects">
          <Heads titles={['Subject', count, 'Share']} nums={[count, 'Share']} />
          <tbody>
            {answer.subjects.map((one) => (
              <tr key={one.subject}>
                <th scope="row">
                  <Clipped text={one.subject} focusable />
                  {one.hashed && <span class="soft small"> (hash of a long name)</span>}
                  <span class="meter" aria-hidden="true">
                    <i style={{ width: `${((100 * countOf(one)) / most).toFixed(1)}%` }} />
                  </span>
                </th>
                <td class="num">{number(Math.round(countOf(one)))}</td>
                <td class="num">
                  {answer.total > 0
                    ? `${number(Math.round((1000 * countOf(one)) / answer.total) / 10)} %`
                    : '–'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
