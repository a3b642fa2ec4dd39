/** When an episode was and how long it took; UTC to the second under a pointer or in focus. Stage: dashboard. */
import type { Episode } from '../../audit/episodes.js';
import { nowMs } from '../data/store.js';
import { isoTime, lastedText, minutesText, utcTime } from '../data/times.js';

export function EpisodeWhen({ fromMs, toMs, open }: Pick<Episode, 'fromMs' | 'toMs' | 'open'>) {
  const lasted = lastedText(toMs - fromMs);
  return (
    <span class="when">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: by keyboard, too, UTC is seen */}
      <span class="tip" tabIndex={0}>
        <time dateTime={isoTime(fromMs)}>{minutesText(fromMs, toMs, nowMs())}</time>
        <span class="tip-text">
          {utcTime(fromMs)}
          {lasted !== '' && ` … ${utcTime(toMs)}`}
        </span>
      </span>
      {lasted !== '' && <span class="soft"> · {lasted}</span>}
      {open && <span class="chip warn">goes on</span>}
    </span>
  );
}
