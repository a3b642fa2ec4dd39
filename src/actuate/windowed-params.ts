/** The numbers and bounds that another window, or a person's bounds, put in force under the same policy. Pure. Stage: actuate. */
import { capacityFor } from '../decide/bounds.js';
import type { LoadedPolicy } from '../policy/load.js';
import { paramsFromPolicy } from '../policy/params.js';
import { inWindows } from '../policy/person-bounds.js';
import type { Policy } from '../policy/schema.js';
import { effective, settled } from '../redis/effective.js';
import type { ParamChange, Params } from '../redis/params.js';
import { parseWindows, type Windows, windowsText } from '../redis/windows.js';
import { adoptedParams } from './adopted-params.js';

/** What else the policy says stays as it is. */
const OF_A_WINDOW = [
  ...['rate', 'capacity', 'inFlightMax', 'policyRate', 'safeRate', 'safeInFlight'],
  ...['minRate', 'maxRate', 'minCapacity', 'maxCapacity', 'minInFlight', 'maxInFlight'],
] as const;

/** Bounds of a person that end raise nothing by themselves: what lies below the minimum is left to the law. */
export function windowedParams(
  loaded: Pick<LoadedPolicy, 'policy' | 'hash'>,
  params: Params,
  windows: Windows,
  nowMs: number,
): { change: ParamChange; goesLower: boolean } {
  const adopted = adoptedParams(loaded, params, nowMs, undefined, windows);
  const change: ParamChange = { windows: windowsText(windows) };
  for (const field of OF_A_WINDOW)
    Object.assign(change, { [field]: adopted.change[field as keyof ParamChange] });
  const ends = windows.bounds === undefined && parseWindows(params.windows).bounds !== undefined;
  if (ends && params.mode === 'auto') {
    const now = settled(params, effective(params, nowMs));
    change.inFlightMax = Math.min(change.inFlightMax ?? 0, now.inFlightMax);
    if (now.rate < (change.rate ?? 0)) {
      change.rate = now.rate;
      change.capacity = Math.min(
        change.capacity ?? 0,
        capacityFor(inWindows(loaded.policy, windows), now.rate),
      );
    }
  }
  return { change, goesLower: adopted.goesLower };
}

/** Bounds whose time is over bind nobody any more, though no daemon has written that yet: a person reaches no farther than the policy. */
export function withoutLapsed(policy: Policy, params: Params, nowMs: number): Params {
  const { bounds, ...windows } = parseWindows(params.windows);
  if (bounds === undefined || bounds.untilMs > nowMs) return params;
  const given = paramsFromPolicy(inWindows(policy, windows));
  const { minRate, maxRate, minInFlight, maxInFlight } = given;
  return { ...params, minRate, maxRate, minInFlight, maxInFlight };
}
