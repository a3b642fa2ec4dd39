/** Of which time things are told: a word, or two times; both stand in the address. Stage: dashboard. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { nowMs } from '../data/store.js';
import { historyHash, type Times } from '../routing.js';
import { fieldMs, fieldText, namedTimes } from './spans.js';

export function TimesForm({ shown }: { shown: Times }) {
  const [fault, setFault] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const own = historyHash(shown);
  // Only with another address: the page is drawn again each second, also while someone types.
  useLayoutEffect(() => {
    setFault(null);
    for (const input of form.current!.querySelectorAll('input')) {
      input.value = fieldText(input.name === 'since' ? shown.sinceMs : shown.untilMs);
    }
  }, [own]);
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(form.current!);
    const sinceMs = fieldMs(`${given.get('since')}`);
    const untilMs = fieldMs(`${given.get('until')}`);
    const crossed = sinceMs !== null && untilMs !== null && untilMs <= sinceMs;
    setFault(crossed ? 'That ends before it begins: give an end that is later.' : null);
    if (!crossed) location.hash = historyHash({ sinceMs, untilMs });
  };
  return (
    <form class="tools times" ref={form} onSubmit={onSubmit}>
      <nav class="choice" aria-label="Times">
        {namedTimes(nowMs()).map(({ title, times }) => {
          const hash = historyHash(times);
          return (
            <a key={title} href={hash} aria-current={hash === own ? 'true' : undefined}>
              {title}
            </a>
          );
        })}
      </nav>
      <label>
        From
        <input type="datetime-local" name="since" />
      </label>
      <label>
        until
        <input type="datetime-local" name="until" />
      </label>
      <button type="submit">Show</button>
      {fault !== null && (
        <p class="error" role="alert">
          {fault}
        </p>
      )}
    </form>
  );
}
