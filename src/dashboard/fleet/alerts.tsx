/** What fires now, the gravest first, with the way back; and what was told in the last day. Stage: dashboard. */
import type { AlertsAnswer } from '../../api/types.js';
import { span } from '../../view/text.js';
import { api } from '../client.js';
import { type Asked, useAnswer } from '../data/ask.js';
import type { Level } from '../data/attention.js';
import { AnswerState } from '../parts/answer.jsx';
import { Glyph } from '../parts/glyph.jsx';
import { Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { limiterHash } from '../routing.js';

const AGAIN_MS = 5000;
/** A fleet whose every limiter fires is not read line by line. */
const SHOWN = 100;

type Alert = AlertsAnswer['alerts'][number];

const LEVEL: Record<Alert['severity'], Level> = { critical: 'act', warning: 'look', info: 'held' };

export function useAlerts(): Asked<AlertsAnswer> {
  return useAnswer('alerts', api.alerts, { everyMs: AGAIN_MS });
}

export function firing(answer: AlertsAnswer | null): Alert[] {
  return (answer?.alerts ?? []).filter(({ state }) => state === 'firing');
}

export function Alerts({ asked }: { asked: Asked<AlertsAnswer> }) {
  const now = firing(asked.value);
  const past = (asked.value?.alerts ?? []).filter(({ state }) => state !== 'firing');
  return (
    <section class="sheet" aria-label="Alerts">
      <h2>Alerts</h2>
      <AnswerState asked={asked} reading="Reading them…" />
      {asked.value !== null && now.length === 0 && (
        <p class="state well">
          <Glyph shape="well" />
          nothing fires
        </p>
      )}
      <List alerts={now} />
      {past.length > 0 && (
        <details>
          <summary class="small soft">{past.length} over, or told once, in the last day</summary>
          <List alerts={past} />
        </details>
      )}
      {asked.value?.more && <p class="soft small">There are more than are shown.</p>}
    </section>
  );
}

function List({ alerts }: { alerts: readonly Alert[] }) {
  if (alerts.length === 0) return null;
  return (
    <ul class="alerts">
      {alerts.slice(0, SHOWN).map((alert) => (
        <li key={alert.id} class={alert.state === 'firing' ? LEVEL[alert.severity] : ''}>
          <div class="alert-head">
            <span class={`state ${alert.state === 'firing' ? LEVEL[alert.severity] : 'over'}`}>
              <Glyph shape={LEVEL[alert.severity]} />
              {alert.severity}
            </span>
            <span class="when">
              <Time ms={alert.sinceMs} />
              <span class="soft">, {lasting(alert)}</span>
            </span>
            <p>
              {alert.limiter !== null && (
                <a href={limiterHash(alert.limiter)}>
                  <Outside text={alert.limiter} />
                </a>
              )}{' '}
              <b>
                <Outside text={alert.what} />
              </b>
            </p>
          </div>
          <p class="alert-why">
            <Outside text={alert.why} />
          </p>
          {alert.numbers.length > 0 && (
            <p class="alert-why">
              {alert.numbers.map(({ name, value }) => (
                <span key={name} class="chip">
                  <Outside text={`${name} ${value}`} />
                </span>
              ))}
            </p>
          )}
          <p class="soft small alert-why">
            <Outside text={alert.who} />
            {alert.owner !== null && (
              <>
                , owner <Outside text={alert.owner} />
              </>
            )}
            ; look: <code>{alert.look}</code>
            {alert.undo !== null && (
              <>
                ; undo: <code>{alert.undo}</code>
              </>
            )}
          </p>
        </li>
      ))}
      {alerts.length > SHOWN && <li class="soft">and {alerts.length - SHOWN} more</li>}
    </ul>
  );
}

function lasting({ state, sinceMs, endedMs }: Alert): string {
  if (state === 'event') return 'once';
  return endedMs === null ? 'fires' : `over after ${span(endedMs - sinceMs)}`;
}
