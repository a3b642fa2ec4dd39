/** Above the charts: what state the breaker was in, and a link for each change. Stage: dashboard. */
import type { SeriesAnswer } from '../../api/types.js';
import { localTime } from '../data/times.js';
import { Glyph } from '../parts/glyph.jsx';
import { outside } from '../parts/outside.jsx';
import { changeHash } from '../routing.js';
import { markersOf, type Span } from './series.js';

/** Markers nearer than this part of the width are one. */
const APART = 0.025;

export function Timeline({
  series,
  toMs,
  states,
}: {
  series: SeriesAnswer;
  toMs: number;
  states: readonly Span[];
}) {
  const { fromMs } = series;
  const part = (ms: number) =>
    `${((100 * (ms - fromMs)) / Math.max(1, toMs - fromMs)).toFixed(2)}%`;
  const markers = markersOf(series.changes, fromMs, toMs, APART);
  return (
    <div class="timeline">
      <div class="markers">
        {markers.map(({ at, changes }) => {
          const newest = changes.at(-1)!;
          const more = changes.length > 1 ? ` and ${changes.length - 1} more` : '';
          const when = localTime(newest.atMs, toMs);
          const kind =
            newest.actor.kind === 'person'
              ? 'held'
              : newest.reason.startsWith('breaker')
                ? 'act'
                : 'well';
          return (
            <a
              key={newest.id}
              class={`marker tip ${at > 0.5 ? 'end' : ''}`}
              style={{ left: `${(at * 100).toFixed(2)}%` }}
              href={changeHash(series.limiter, newest)}
              aria-label={`Change r${newest.revision}${more}, ${when}: ${outside(newest.sentence)}`}
            >
              <span class={`state ${kind}`}>
                <Glyph shape={kind} />
              </span>
              <span class="tip-text">
                r{newest.revision}
                {more}, {when}: <bdi>{outside(newest.sentence)}</bdi>
              </span>
            </a>
          );
        })}
      </div>
      <div class="states" role="img" aria-label={statesText(states, toMs)}>
        {states.map((span) => (
          <span
            key={span.fromMs}
            class={`stretch ${span.state}`}
            style={{
              left: part(Math.max(fromMs, span.fromMs)),
              right: `calc(100% - ${part(span.toMs)})`,
            }}
          />
        ))}
      </div>
    </div>
  );
}

function statesText(states: readonly Span[], toMs: number): string {
  const other = states.filter(({ state }) => state !== 'closed');
  if (other.length === 0) return 'Breaker: closed (requests pass) all the time shown';
  const last = other
    .slice(-5)
    .map(
      (span) =>
        `${span.state} from ${localTime(span.fromMs, toMs)} to ${localTime(span.toMs, toMs)}`,
    );
  return `Breaker: ${last.join('; ')}; else closed`;
}
