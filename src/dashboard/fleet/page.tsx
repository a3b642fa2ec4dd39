/** Fleet and health: alerts, daemons, where audit logs go, who leads what, Redis, signals that are lost. Stage: dashboard. */
import type { FleetAnswer } from '../../api/types.js';
import { span } from '../../view/text.js';
import { api } from '../client.js';
import { useAnswer } from '../data/ask.js';
import { isQuiet } from '../data/attention.js';
import { useStore } from '../data/store.js';
import { AnswerState } from '../parts/answer.jsx';
import { Glyph } from '../parts/glyph.jsx';
import { Heads } from '../parts/heads.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { limiterHash } from '../routing.js';
import { useTitle } from '../shell/title.js';
import { Alerts, firing, useAlerts } from './alerts.jsx';
import { Exports } from './exports.jsx';
import { Leases } from './leases.jsx';
import { Redis } from './redis.jsx';

/** Each answer asks Redis for the lease of every limiter. */
const FLEET_EVERY_MS = 5000;
/** A daemon that has said nothing for so long is gone, or cut off. */
const SILENT_MS = 10_000;

export function FleetPage() {
  const asked = useAnswer('fleet', api.fleet, { everyMs: FLEET_EVERY_MS });
  const answer = asked.value;
  const gone = answer?.daemons.filter(isGone) ?? [];
  const unled = answer?.leases.filter(({ owner }) => owner === null) ?? [];
  const alerts = useAlerts();
  const fires = firing(alerts.value);
  const wrong = [
    ...(fires.length > 0 ? [fires.length === 1 ? fires[0]!.what : `${fires.length} alerts`] : []),
    ...(answer?.redis.unknown != null ? ['Redis cannot be asked'] : []),
    ...(gone.length > 0 ? [`${gone.length} silent`] : []),
    ...(unled.length > 0 ? [`${unled.length} without a daemon`] : []),
  ];
  useTitle(wrong.length > 0 ? `${wrong[0]} · Fleet · Flyball` : 'Fleet · Flyball');
  return (
    <>
      <h1>Fleet and health</h1>
      <Alerts asked={alerts} />
      <AnswerState asked={asked} reading="Reading it…" />
      {answer !== null && (
        <>
          <Daemons daemons={answer.daemons} />
          <Exports daemons={answer.daemons} />
          <div class="two">
            <Redis redis={answer.redis} />
            <LostSignals />
          </div>
          <Leases leases={answer.leases} />
        </>
      )}
    </>
  );
}

type Daemon = FleetAnswer['daemons'][number];

function isGone(daemon: Daemon): boolean {
  return daemon.silentMs > SILENT_MS;
}

function Daemons({ daemons }: { daemons: readonly Daemon[] }) {
  return (
    <section class="sheet" aria-label="Daemons">
      <h2>Daemons</h2>
      <div class="scrolled stacked">
        <table>
          <Heads
            titles={['Name', 'State', 'Host', 'Leads', 'Policy faults', 'Version', 'Listens at']}
            nums={['Leads', 'Policy faults']}
          />
          <tbody>
            {daemons.map((daemon) => (
              <tr key={daemon.owner}>
                <th scope="row">
                  <Clipped text={daemon.name} focusable />
                  {daemon.self && <span class="chip aside">this one</span>}
                </th>
                <td>
                  <span class={`state ${isGone(daemon) ? 'act' : 'well'}`}>
                    <Glyph shape={isGone(daemon) ? 'act' : 'well'} />
                    {isGone(daemon) ? `silent for ${span(daemon.silentMs)}` : 'alive'}
                  </span>
                </td>
                <td>
                  <Clipped text={daemon.host} focusable />
                  {daemon.pid !== null && <span class="soft small"> pid {daemon.pid}</span>}
                </td>
                <td class="num" data-label="leads">
                  {daemon.leads}
                </td>
                <td
                  class={`num ${daemon.policyFaults > 0 ? 'error' : ''}`}
                  data-label="policy faults"
                >
                  {daemon.policyFaults}
                </td>
                <td>
                  <Outside text={daemon.version ?? '?'} />
                </td>
                <td>
                  {daemon.http === '' ? (
                    <span class="soft">nowhere</span>
                  ) : (
                    <Outside text={daemon.http} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function LostSignals() {
  const { rows } = useStore();
  const lost = [...rows.values()].flatMap((view) =>
    view.missing
      .filter(({ reason }) => !isQuiet(reason))
      .map((one) => ({ ...one, limiter: view.limiter })),
  );
  return (
    <section class="sheet" aria-label="Signals without evidence">
      <h2>Signals without evidence</h2>
      {lost.length === 0 ? (
        <p class="soft">None: each signal that a law decides by is fresh, or waits for traffic.</p>
      ) : (
        <ul class="lost">
          {lost.slice(0, 100).map(({ limiter, signal, reason }) => (
            <li key={`${limiter} ${signal}`}>
              <a href={limiterHash(limiter)}>
                <Outside text={limiter} />
              </a>{' '}
              <Outside text={signal} />: <Outside text={reason.replaceAll('_', ' ')} />
            </li>
          ))}
          {lost.length > 100 && <li>and {lost.length - 100} more</li>}
        </ul>
      )}
    </section>
  );
}
