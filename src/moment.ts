/** Times as people and files write them, read strictly: what `Date.parse` guesses or rolls over is none. Stage: all. */

const ISO = /^(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** `2026-05-04`, `2026-05-04T13:00:00.5Z`, `2026-05-04 13:00` (the reader's clock) → ms; NaN for what is no time, or no day: 02-30. */
export function isoMs(text: string): number {
  const [, day] = ISO.exec(text.trim()) ?? [];
  if (day === undefined) return Number.NaN;
  // A day that is not is taken for one of the month after.
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day))
    return Number.NaN;
  return Date.parse(text.trim());
}
