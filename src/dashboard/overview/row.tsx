/** One limiter as a row of the overview. Stage: dashboard. */
import type { EpisodeView } from '../../view/episodes.js';
import { withUnit } from '../../view/signal-unit.js';
import { number } from '../../view/text.js';
import { isOld } from '../data/attention.js';
import { short } from '../data/numbers.js';
import type { Row } from '../data/rows.js';
import { ago } from '../data/times.js';
import { StateBadge } from '../parts/glyph.jsx';
import { Meter } from '../parts/meter.jsx';
import { Clipped, Outside, outside, withoutName } from '../parts/outside.jsx';
import { limiterHash } from '../routing.js';

export interface RowProps {
  row: Row;
  index: number;
  chosen: boolean;
  nowMs: number;
  /** Its last episode, where it is known. */
  told: EpisodeView | undefined;
}

export function LimiterRow({ row, index, chosen, nowMs, told }: RowProps) {
  const { view, attention } = row;
  const { traffic, inForce, bounds, worst } = view;
  const href = limiterHash(view.limiter);
  const open = (event: MouseEvent) => {
    if ((event.target as HTMLElement).closest('a') === null) location.hash = href;
  };
  return (
    <tr class={`row ${chosen ? 'is-chosen' : ''}`} aria-rowindex={index + 2} onClick={open}>
      <th scope="row" class="name">
        <a href={href}>
          <Clipped text={view.limiter} />
        </a>
        <span class="under">
          {view.mode !== null && view.mode !== 'auto' ? `mode ${view.mode}` : ''}
          {view.group !== null && (
            <>
              {view.mode !== 'auto' ? ', ' : ''}group <Outside text={view.group} />
            </>
          )}
        </span>
      </th>
      <td class="told">
        <StateBadge view={view} />
        <span class={`under ${attention.level}`} title={outside(attention.words)}>
          <Outside text={attention.words} />
        </span>
      </td>
      <td class="num" data-label="Rate">
        {inForce ? (
          <Meter value={inForce.rate} unit="/s" bounds={bounds?.rate ?? null} kind="rate" />
        ) : (
          '–'
        )}
      </td>
      <td class="num" data-label="Cap">
        {inForce?.inFlightMax != null ? (
          <Meter value={inForce.inFlightMax} unit="" bounds={bounds?.inFlight ?? null} kind="cap" />
        ) : (
          <span class="soft">none</span>
        )}
      </td>
      <td class="num" data-label="Offered">
        {flow(traffic.seen, traffic.offeredPerSecond)}
      </td>
      <td class="num wide">{flow(traffic.seen, traffic.admittedPerSecond)}</td>
      <td
        class={`num ${row.deniedPerSecond > 0 ? 'loud' : ''}`}
        data-label={view.mode === 'shadow' ? 'Would deny' : 'Denied'}
      >
        {flow(traffic.seen, row.deniedPerSecond)}
      </td>
      <td class="wide">
        {worst ? (
          <>
            {number(Math.round(worst.ratio * 100) / 100)} ×{isOld(view) ? ' (old)' : ''}
            <span class="under">
              <Outside text={`${worst.signal} ${withUnit(worst.value, worst.unit)}`} />
            </span>
          </>
        ) : (
          <span class="soft">–</span>
        )}
      </td>
      <td class="wide">
        <Last view={view} told={told} nowMs={nowMs} />
      </td>
    </tr>
  );
}

/** The last episode in words; of what came after it, the last change. */
function Last({ view, told, nowMs }: Pick<RowProps, 'told' | 'nowMs'> & Pick<Row, 'view'>) {
  const last = view.lastChange;
  if (last === null) return <span class="soft">never changed</span>;
  const holds = told !== undefined && told.lastRevision === last.revision;
  const whole = holds ? told.sentence : last.sentence;
  const sentence = withoutName(whole, view.limiter);
  return (
    <span class="lines" title={outside(sentence)}>
      <b>{ago(last.atMs, nowMs)}</b> <Outside text={sentence} />
    </span>
  );
}

function flow(seen: boolean, perSecond: number) {
  if (!seen) return <span class="soft">–</span>;
  return perSecond === 0 ? <span class="soft">0</span> : `${short(perSecond)}/s`;
}
