/** What a verb refuses is said for a terminal; beside a form its flags are called as its fields are. Pure. Stage: dashboard. */
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
  '--rate': 'the rate',
  '--in-flight': 'the cap',
  '--rate-min': 'the least rate',
  '--rate-max': 'the most of the rate',
  '--in-flight-min': 'the least cap',
  '--in-flight-max': 'the most of the cap',
  '--clear': 'the end of those that hold',
  '--anyway --reason "…"': 'the box above, and a reason',
};
/** A command to copy, or a flag alone. */
const SAID = /(flyball [a-z]+(?: [^\s,;]+)*)|(--anyway --reason "…"|--[a-z-]+)/g;

/** Commands stay as they are. */
export function formWords(text: string): string {
  return text.replace(SAID, (all, command: string | undefined, flag: string | undefined) =>
    command === undefined ? (FIELDS[flag ?? ''] ?? all) : command,
  );
}
