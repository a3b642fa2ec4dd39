/** What the leader writes when a window of the schedule begins or ends, or a person's bounds: asked of the clock at each turn. Stage: daemon. */
import type { LoadedPolicy } from '../actuate/adopt.js';
import { windowedParams } from '../actuate/windowed-params.js';
import { windowsAt } from '../policy/profile.js';
import type { ParamChange, Params } from '../redis/params.js';
import { parseWindows, SCHEDULE, type Span, type Windows, windowsText } from '../redis/windows.js';
import type { Repair } from './repairs.js';
import { heldBy } from './view.js';

/** One write for all that began or ended, or null. Under a person's hold numbers stay, and no freeze begins. */
export function windowChange(adopted: LoadedPolicy, params: Params, nowMs: number): Repair | null {
  const { policy } = adopted;
  if (policy.schedule === undefined && params.windows === '') return null;
  const was = parseWindows(params.windows);
  const due = windowsAt(policy, nowMs);
  const byPerson = heldBy(params, nowMs) !== 'none' && params.heldBy !== SCHEDULE;
  if (byPerson && was.freeze === undefined) delete due.freeze;
  const { bounds } = was;
  if (bounds !== undefined && bounds.untilMs > nowMs) due.bounds = bounds;
  const lapsed = bounds !== undefined && due.bounds === undefined;
  const windows = windowsText(due);
  if (windows === params.windows) return null;
  const change: ParamChange = { windows, ...freezing(was, due, params) };
  let refloor = {};
  if (lapsed || was.profile?.name !== due.profile?.name) {
    const numbers = windowedParams(adopted, params, due, nowMs);
    Object.assign(change, numbers.change);
    if (lapsed && numbers.goesLower) refloor = { refloor: 'empty' };
  }
  const began = (due.profile && !same(was.profile, due.profile)) || (due.freeze && !was.freeze);
  return {
    change,
    cause: 'policy',
    reason: lapsed ? 'bounds_lapsed' : began ? 'window_begins' : 'window_ends',
    ...refloor,
    sentence: sentenceOf(was, due, params, change),
    detail: { windows: due, before: was },
  };
}

/** A freeze that was begun is not begun again: a person may have thawed it. */
function freezing(was: Windows, due: Windows, params: Params): ParamChange {
  if (due.freeze !== undefined && !same(was.freeze, due.freeze)) {
    return { frozenUntil: due.freeze.untilMs, heldBy: SCHEDULE };
  }
  const ended = due.freeze === undefined && params.heldBy === SCHEDULE && params.pinnedUntil === 0;
  return ended ? { frozenUntil: 0, heldBy: '' } : {};
}

function same(a: Span | undefined, b: Span | undefined): boolean {
  return a?.fromMs === b?.fromMs && a?.untilMs === b?.untilMs;
}

function profileTold(was: Windows, due: Windows, until: (span: Span) => string): string[] {
  if (was.profile?.name === due.profile?.name) return [];
  if (due.profile === undefined) return [`Profile ${was.profile!.name} ends`];
  return [`Profile ${due.profile.name} holds ${until(due.profile)}`];
}

function sentenceOf(was: Windows, due: Windows, params: Params, change: ParamChange): string {
  const until = ({ untilMs }: Span) =>
    `until ${new Date(untilMs).toISOString().replace(/\.\d+Z$/, 'Z')}`;
  const parts: string[] = [];
  const bounds = was.bounds !== undefined && due.bounds === undefined ? was.bounds : null;
  if (bounds !== null) parts.push(`The time of the bounds by ${bounds.by} is over`);
  if (bounds !== null || was.profile?.name !== due.profile?.name) {
    const { minRate = params.minRate, maxRate = params.maxRate, rate = params.rate } = change;
    parts.push(
      ...profileTold(was, due, until),
      `bounds of the rate ${params.minRate} … ${params.maxRate} → ${minRate} … ${maxRate}/s`,
      rate === params.rate ? `rate ${rate}/s stays` : `rate ${params.rate}/s → ${rate}/s`,
    );
  } else if (due.profile !== undefined && !same(was.profile, due.profile)) {
    parts.push(`Profile ${due.profile.name} holds ${until(due.profile)}`);
  }
  if (due.freeze !== undefined && !same(was.freeze, due.freeze)) {
    parts.push(`frozen by the schedule ${until(due.freeze)}: ${due.freeze.why}`);
  } else if (due.freeze === undefined && was.freeze !== undefined) {
    parts.push(`the scheduled freeze ends: ${was.freeze.why}`);
  }
  const text = `${parts.join(', ')}.`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
