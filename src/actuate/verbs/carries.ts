/** What to know before limits are raised by hand: whether what they protect carries it now. Pure. Stage: actuate. */
import { withUnit } from '../../decide/reasons.js';
import type { Sample } from '../../decide/types.js';
import type { Policy } from '../../policy/schema.js';
import type { EntryValues } from '../entry.js';
import { short } from './plan.js';

/** What a daemon saw at its last tick. */
export interface Seen {
  sample: Pick<Sample, 'signals'>;
  /** Redis ms of that tick. */
  atMs: number;
}

/** Older than this says nothing of now. */
const OLD_MS = 30_000;

/** Empty where nothing is raised, or every objective is met. */
export function carryNotes(
  policy: Policy | null,
  seen: Seen | null,
  nowMs: number,
  before: EntryValues,
  after: EntryValues,
): string[] {
  const rises = after.rate > before.rate;
  const capRises = after.inFlightMax > before.inFlightMax && before.inFlightMax > 0;
  if (policy === null || !(rises || capRises)) return [];
  const [from, to] = rises
    ? [`${short(before.rate)}/s`, `${short(after.rate)}/s`]
    : [`in-flight cap ${before.inFlightMax}`, `in-flight cap ${after.inFlightMax}`];
  const objectives = Object.entries(policy.objective);
  if (objectives.length === 0) return [];
  if (seen === null || nowMs - seen.atMs > OLD_MS) {
    return [`No daemon has read its signals of late: whether it carries ${to} now is not known.`];
  }
  return objectives.flatMap(([name, objective]) => {
    const value = seen.sample.signals[name]?.value ?? null;
    const { below } = objective;
    if (value === null || below === undefined || value <= below) return [];
    const is = withUnit(policy, name, value);
    return [
      `${name} is ${is} (setpoint ${withUnit(policy, name, below)}) at ${from} now; ${to} is above what it carries.`,
    ];
  });
}
