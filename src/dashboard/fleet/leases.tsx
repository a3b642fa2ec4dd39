/** Who leads what: limiters that nobody leads come first. Stage: dashboard. */
import type { FleetAnswer } from '../../api/types.js';
import { span } from '../../view/text.js';
import { Glyph } from '../parts/glyph.jsx';
import { Heads } from '../parts/heads.jsx';
import { Clipped, Outside } from '../parts/outside.jsx';
import { limiterHash } from '../routing.js';

export function Leases({ leases }: { leases: FleetAnswer['leases'] }) {
  const SHOWN = 200;
  const unled = leases.filter(({ owner }) => owner === null);
  const order = [...unled, ...leases.filter(({ owner }) => owner !== null)];
  return (
    <section class="sheet" aria-label="Who leads what">
      <details open={unled.length > 0 || leases.length <= 20}>
        <summary>
          <strong>Who leads what</strong>{' '}
          <span class="soft">
            {leases.length} {leases.length === 1 ? 'limiter' : 'limiters'}, {unled.length} without a
            daemon
          </span>
        </summary>
        <div class="scrolled stacked">
          <table>
            <Heads titles={['Limiter', 'Lease', 'Last tick']} nums={['Last tick']} />
            <tbody>
              {order.slice(0, SHOWN).map(({ limiter, owner, lastTickAgeMs }) => (
                <tr key={limiter}>
                  <th scope="row">
                    <a href={limiterHash(limiter)}>
                      <Clipped text={limiter} />
                    </a>
                  </th>
                  <td>
                    {owner === null ? (
                      <span class="state act">
                        <Glyph shape="act" />
                        none
                      </span>
                    ) : (
                      <Outside text={owner} />
                    )}
                  </td>
                  <td class="num" data-label="last tick">
                    {lastTickAgeMs === null ? '–' : `${span(lastTickAgeMs)} ago`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {order.length > SHOWN && <p class="soft">and {order.length - SHOWN} more</p>}
      </details>
    </section>
  );
}
