/** Where each daemon's audit logs go beside Redis, how far behind that is, and what keeps it. Stage: dashboard. */
import type { FleetAnswer } from '../../api/types.js';
import { span } from '../../view/text.js';
import type { Level } from '../data/attention.js';
import { nowMs } from '../data/store.js';
import { Glyph } from '../parts/glyph.jsx';
import { Heads } from '../parts/heads.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { Time } from '../parts/time.jsx';
import { changeHash } from '../routing.js';

type Daemon = FleetAnswer['daemons'][number];
type Place = NonNullable<Daemon['exports']>[number];

/** An export that lags so much has stopped, or nearly. */
const LATE_MS = 60_000;

function standing(place: Place): { level: Level; words: string } {
  if (place.fault !== null) return { level: 'act', words: 'fails' };
  if (!place.writes) return { level: 'well', words: 'stands by' };
  if (place.lagMs !== null && place.lagMs > LATE_MS) return { level: 'look', words: 'behind' };
  return { level: 'well', words: 'up to date' };
}

export function Exports({ daemons }: { daemons: readonly Daemon[] }) {
  const places = daemons.flatMap((daemon) =>
    (daemon.exports ?? []).map((place) => ({ daemon, place })),
  );
  return (
    <section class="sheet" aria-label="Audit export">
      <h2>Audit export</h2>
      {places.length === 0 ? (
        <p class="soft">
          None: audit logs are in Redis alone, and go with it. <code>FLYBALL_AUDIT_FILE</code> or{' '}
          <code>FLYBALL_AUDIT_POSTGRES</code> keeps them elsewhere too.
        </p>
      ) : (
        <div class="scrolled stacked exports">
          <table>
            <Heads
              titles={['Daemon', 'To', 'State', 'Behind', 'Newest there', 'Heads signed']}
              nums={['Behind']}
            />
            <tbody>
              {places.map(({ daemon, place }) => (
                <Row key={`${daemon.owner} ${place.kind} ${place.to}`} {...{ daemon, place }} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ daemon, place }: { daemon: Daemon; place: Place }) {
  const { level, words } = standing(place);
  const { last } = place;
  return (
    <tr>
      <th scope="row">
        <Clipped text={daemon.name} focusable />
      </th>
      <td data-label={place.kind} class="broad">
        <Clipped text={place.to} focusable />
      </td>
      <td class="broad">
        <span class={`state ${level}`}>
          <Glyph shape={level} />
          {words}
        </span>
        {!place.writes && <span class="soft small"> another daemon writes</span>}
        {place.fault !== null && (
          <span class="error small">
            {' '}
            <Outside text={place.fault} />
          </span>
        )}
      </td>
      <td class="num" data-label="behind">
        {place.lagMs === null ? '–' : span(place.lagMs)}
      </td>
      <td data-label="newest">
        {last === null ? (
          <span class="soft">–</span>
        ) : (
          <>
            <a href={changeHash(last.limiter, last)}>
              <Outside text={last.limiter} /> r{last.revision}
            </a>
            , <Time ms={last.atMs} />
          </>
        )}
      </td>
      <td data-label="heads signed">
        {place.signedBy === null ? (
          <span class="soft">by nobody</span>
        ) : (
          <>
            <code>{place.signedBy.slice(0, 12)}</code>
            {place.headsMs !== null && (
              <span class="soft">, {span(nowMs() - place.headsMs)} ago</span>
            )}
          </>
        )}
      </td>
    </tr>
  );
}
