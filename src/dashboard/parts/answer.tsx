/** What stands where an answer of the API is not there yet, is late, or did not come. Stage: dashboard. */
import { span } from '../../view/text.js';
import type { Asked } from '../data/ask.js';
import { keptForMs } from '../data/asker.js';
import { useSeconds } from '../data/store.js';
import { Outside } from './outside.jsx';

/** Above the answer: how old it is, when that must be said; in place of one that never came: why, or that it is read. */
export function AnswerState<T>({ asked, reading }: { asked: Asked<T>; reading: string }) {
  useSeconds();
  const { value, fault } = asked;
  const kept = keptForMs(asked, performance.now());
  const age = kept === null ? '' : `This is how it was ${span(kept)} ago`;
  if (value === null && fault === null) return <p class="empty">{reading}</p>;
  if (fault !== null) {
    return (
      <p class="error">
        {age === '' ? '' : `${age}: `}
        <Outside text={fault} />
      </p>
    );
  }
  return age === '' ? null : <p class="soft small">{age}; the new answer is on its way.</p>;
}
