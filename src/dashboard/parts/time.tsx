/** A moment: this machine's time, UTC under a pointer or in focus. Stage: dashboard. */
import { nowMs } from '../data/store.js';
import { ago, isoTime, localTime, utcTime } from '../data/times.js';

/** `still`: inside a link or row that takes the focus itself. */
export function Time({
  ms,
  relative = false,
  still = false,
}: {
  ms: number;
  relative?: boolean;
  still?: boolean;
}) {
  const now = nowMs();
  const text = relative ? ago(ms, now) : localTime(ms, now);
  const focus = still ? {} : { tabIndex: 0 };
  return (
    <span class="tip" {...focus}>
      <time dateTime={isoTime(ms)}>{text}</time>
      <span class="tip-text">
        {relative ? `${localTime(ms, now)} · ` : ''}
        {utcTime(ms)}
      </span>
    </span>
  );
}
