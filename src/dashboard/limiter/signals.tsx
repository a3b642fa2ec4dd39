/** Each signal: reading, setpoint, verdict, and what follows from it now. Stage: dashboard. */
import { withUnit } from '../../view/signal-unit.js';
import type { SignalVerdict, SignalView } from '../../view/signals.js';
import { span } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { isQuiet, type Level } from '../data/attention.js';
import { AnswerState } from '../parts/answer.jsx';
import { Glyph } from '../parts/glyph.jsx';
import { Heads } from '../parts/heads.jsx';
import { Outside } from '../parts/outside.jsx';

const LEVEL: Record<SignalVerdict, Level> = {
  fresh: 'well',
  waiting: 'well',
  thin: 'look',
  stale: 'look',
  missing: 'act',
};

/** Where nobody asks for anything no signal can be: that needs nobody, here as on the overview. */
function levelOf({ verdict, reason }: SignalView): Level {
  return LEVEL[verdict] === 'act' && reason !== null && isQuiet(reason) ? 'look' : LEVEL[verdict];
}

/** Of no traffic the news is new, and the number of the last who were answered. */
function hasAge({ verdict, reason }: SignalView): boolean {
  return verdict !== 'fresh' && reason !== 'no_traffic';
}

export function Signals({ limiter }: { limiter: string }) {
  const asked = useAnswer(limiter, () => api.signals(limiter), { everyMs: 5000 });
  const answer = asked.value;
  return (
    <section class="sheet" aria-label="Signals">
      <h2>Signals</h2>
      <AnswerState asked={asked} reading="Reading them…" />
      {answer === null ? null : answer.signals.length === 0 ? (
        <p class="soft">{answer.held ?? 'Its policy reads none.'}</p>
      ) : (
        <div class="scrolled stacked">
          <table>
            <Heads
              titles={['Signal', 'Reading', 'Setpoint', 'State', 'So the law']}
              nums={['Reading', 'Setpoint']}
            />
            <tbody>
              {answer.signals.map((view) => (
                <tr key={view.signal}>
                  <th scope="row">
                    <Outside text={view.signal} />
                  </th>
                  <td class="num" data-label="Reading">
                    {view.value === null ? '–' : withUnit(view.value, view.unit)}
                    {view.value !== null && view.reason === 'no_traffic' ? ' (old)' : ''}
                  </td>
                  <td class="num" data-label="Setpoint">
                    {view.setpoint === null
                      ? '–'
                      : `${view.side === 'above' ? '>' : '<'} ${withUnit(view.setpoint, view.unit)}`}
                  </td>
                  <td class="broad">
                    <span class={`state ${levelOf(view)}`}>
                      <Glyph shape={levelOf(view)} />
                      {view.verdict}
                    </span>{' '}
                    <span class="soft small">
                      {hasAge(view) ? span(view.ageMs) : ''}
                      {view.reason === null ? (
                        ''
                      ) : (
                        <>
                          {' '}
                          <Outside text={view.detail ?? view.reason.replaceAll('_', ' ')} />
                        </>
                      )}
                    </span>
                  </td>
                  <td class="broad" data-label="The law">
                    <Outside text={view.follows} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {answer?.held && answer.signals.length > 0 && (
        <p class="soft small">
          <Outside text={answer.held} />
        </p>
      )}
    </section>
  );
}
