/** Text that others wrote (names, reasons, actors): inert, isolated in its direction, short until it is looked at. Stage: dashboard. */
import { clean } from '../../view/text.js';

/** Longer is no reading matter; the API and the CLI have it whole. */
const MOST = 600;

/** Control and direction marks are shown as what they are; nothing of it is ever markup. */
export function outside(text: string): string {
  const shown = clean(text);
  return shown.length > MOST ? `${shown.slice(0, MOST)}… (${shown.length} characters)` : shown;
}

/** Where a limiter's name stands before a sentence about it, it is told once. */
export function withoutName(sentence: string, limiter: string): string {
  return sentence.startsWith(`${limiter} `) ? sentence.slice(limiter.length + 1) : sentence;
}

export function Outside({ text }: { text: string }) {
  return <bdi>{outside(text)}</bdi>;
}

/** On one line, clipped to its place; the whole under a pointer or in focus (of it or of the link around it). */
export function Clipped({ text, focusable = false }: { text: string; focusable?: boolean }) {
  const shown = outside(text);
  const focus = focusable ? { tabIndex: 0 } : {};
  return (
    <span class="tip" {...focus}>
      <bdi class="clip">{shown}</bdi>
      {shown.length > 24 && (
        <span class="tip-text" aria-hidden="true">
          <bdi>{shown}</bdi>
        </span>
      )}
    </span>
  );
}
