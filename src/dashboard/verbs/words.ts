/** What a verb refuses is said by the fields of its request; beside a form they are called as they are there. Pure. Stage: dashboard. */
import type { HoldView } from '../../view/status.js';

/** Whose pin a rollback takes the place of, and what comes after; null: nobody's. */
export function pinEnds(
  holds: readonly Pick<HoldView, 'kind' | 'by'>[],
  holding: string,
  lasts: string,
): string | null {
  const pin = holds.find(({ kind }) => kind === 'pinned');
  if (pin === undefined) return null;
  const then = lasts.startsWith('until') ? lasts : `for ${lasts}, then the autopilot goes on`;
  return `Ends the pin of ${pin.by}; holds ${holding} ${then}.`;
}

const FIELDS: Record<string, string> = {
  inFlight: 'the cap',
  rateMin: 'the least rate',
  rateMax: 'the most of the rate',
  inFlightMin: 'the least cap',
  inFlightMax: 'the most of the cap',
  'anyway, reason': 'the box above, and a reason',
};
/** As a word of its own: `bounds.inFlight.max` is a field of a policy. */
const FIELD = new RegExp(`(?<![.\\w])(?:${Object.keys(FIELDS).join('|')})(?![.\\w]\\w)`, 'g');

/** Those that are words already, as `rate`, stay as they are. */
export function formWords(text: string): string {
  return text.replace(FIELD, (field) => FIELDS[field]!);
}
