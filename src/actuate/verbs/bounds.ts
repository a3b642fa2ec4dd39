/** Timed bounds: a person widens or narrows within what the limits may move, for a while; and ends that before its time. Pure. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import { paramsFromPolicy } from '../../policy/params.js';
import { inWindows } from '../../policy/person-bounds.js';
import type { Policy } from '../../policy/schema.js';
import type { ParamChange, Params } from '../../redis/params.js';
import { type PersonBounds, parseWindows, type Windows } from '../../redis/windows.js';
import type { EntryValues } from '../entry.js';
import { windowedParams } from '../windowed-params.js';
import { type BoundsTold, checkWanted, type WantedBounds } from './bounds-wanted.js';
import {
  type Facts,
  goesSafe,
  moved,
  type Planner,
  short,
  standing,
  untilText,
  type VerbPlan,
} from './plan.js';

/** In place of the bounds that a person set before, if any. They always end by themselves: what should last is the policy's. */
export function setBounds(wanted: WantedBounds, forMs: number): Planner {
  return (facts) => {
    const { limiter, params, nowMs, actor } = facts;
    const policy = policyOf(facts);
    const was = parseWindows(params.windows);
    const said = saidOf(wanted);
    checkWanted(wanted, facts, own(policy, params, was));
    const untilMs = Math.round(nowMs + forMs);
    const windows: Windows = {
      ...was,
      bounds: { ...said, by: actor, fromMs: Math.floor(nowMs), untilMs },
    };
    const plan = planOf(facts, policy, windows);
    const { before, after } = plan.detail.bounds as { before: BoundsTold; after: BoundsTold };
    const told = boundsMoved(before, after) || 'as they are';
    const numbers = moved(plan.before, plan.after);
    return {
      ...plan,
      reason: 'bounds_set',
      sentence: `${actor} set the bounds of ${limiter}: ${told}${numbers ? `; ${numbers}` : ''}; held ${untilText(untilMs)}.`,
      detail: { ...plan.detail, until: untilMs },
      notes: [...notesOf(facts, was, own(policy, params, was), after), ...plan.notes],
    };
  };
}

/** The bounds of policy and profile hold again; nothing is raised by that. */
export function clearBounds(): Planner {
  return (facts) => {
    const { limiter, params, actor } = facts;
    const { bounds, ...rest } = parseWindows(params.windows);
    if (bounds === undefined) {
      return {
        kind: 'nothing',
        sentence: `Nobody has set bounds of ${limiter}: those of its policy hold.`,
      };
    }
    const plan = planOf(facts, policyOf(facts), rest);
    const { before, after } = plan.detail.bounds as { before: BoundsTold; after: BoundsTold };
    const numbers = moved(plan.before, plan.after);
    return {
      ...plan,
      reason: 'bounds_cleared',
      sentence: `${actor} ended the bounds of ${limiter} by ${bounds.by}: ${boundsMoved(before, after) || 'as they were'}${numbers ? `; ${numbers}` : ''}.`,
      detail: { ...plan.detail, wasUntil: bounds.untilMs, wasSetBy: bounds.by },
    };
  };
}

function planOf(
  facts: Facts,
  policy: Policy,
  windows: Windows,
): Omit<VerbPlan, 'reason' | 'sentence'> {
  const { params, nowMs } = facts;
  const { values: before, settled, daemon } = standing(facts);
  const loaded = { policy, hash: params.policyHash };
  const { change, goesLower } = windowedParams(loaded, params, windows, nowMs);
  const { rate, capacity, inFlightMax } = { ...before, ...change } as EntryValues;
  const bounds = { before: boundsTold(params), after: boundsTold({ ...params, ...change }) };
  const notes = goesLower
    ? ['The lowest rate falls below what buckets are kept for, so all begin empty.']
    : [];
  if (!daemon) notes.push(goesSafe({ ...params, ...change }));
  return {
    kind: 'change',
    before,
    after: { ...before, rate, capacity, inFlightMax },
    change: { ...settled, ...change },
    agreed: ['mode', 'state'],
    basis: JSON.stringify([bounds, params.policyHash]),
    ...(goesLower ? { refloor: 'empty' as const } : {}),
    detail: { bounds },
    notes,
  };
}

/** `rate 20 … 400 → 50 … 600/s, in-flight cap 2 … 64 → 2 … 32`; empty when none moves. */
function boundsMoved(before: BoundsTold, after: BoundsTold): string {
  const range = (of: { min: number; max: number } | null) =>
    of === null ? 'none' : `${short(of.min)} … ${short(of.max)}`;
  const line = (
    name: string,
    from: BoundsTold['inFlight'],
    to: BoundsTold['inFlight'],
    unit = '',
  ) => (range(from) === range(to) ? [] : [`${name} ${range(from)} → ${range(to)}${unit}`]);
  return [
    ...line('rate', before.rate, after.rate, '/s'),
    ...line('in-flight cap', before.inFlight, after.inFlight),
  ].join(', ');
}

export function boundsTold(
  params: Pick<Params, 'minRate' | 'maxRate' | 'minInFlight' | 'maxInFlight'>,
): BoundsTold {
  const { minRate, maxRate, minInFlight, maxInFlight } = params;
  return {
    rate: { min: minRate, max: maxRate },
    inFlight: maxInFlight > 0 ? { min: minInFlight, max: maxInFlight } : null,
  };
}

/** What would hold without a person's bounds. */
function own(policy: Policy, params: Params, { bounds: _, ...windows }: Windows): BoundsTold {
  const given: ParamChange = paramsFromPolicy(inWindows(policy, windows));
  return boundsTold({ ...params, ...given });
}

function saidOf({ rateMin, rateMax, inFlightMin, inFlightMax }: WantedBounds): PersonBounds {
  const ends = (min?: number, max?: number) => ({
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
  });
  const rate = ends(rateMin, rateMax);
  const inFlight = ends(inFlightMin, inFlightMax);
  return {
    ...(Object.keys(rate).length > 0 && { rate }),
    ...(Object.keys(inFlight).length > 0 && { inFlight }),
  };
}

function notesOf(
  { params, policy }: Facts,
  was: Windows,
  own: BoundsTold,
  after: BoundsTold,
): string[] {
  const notes: string[] = [];
  if (was.bounds !== undefined) {
    notes.push(
      `They take the place of those by ${was.bounds.by}, which held ${untilText(was.bounds.untilMs)}.`,
    );
  }
  if (after.rate.max > own.rate.max || (after.inFlight?.max ?? 0) > (own.inFlight?.max ?? 0)) {
    const cap = own.inFlight === null ? '' : `, cap ${short(own.inFlight.max)}`;
    notes.push(
      `Wider than the policy: when they end, what lies above comes back to it (rate ${short(own.rate.max)}/s${cap}).`,
    );
  }
  if (params.mode !== 'auto' || policy?.control.law === 'fixed') {
    const what =
      params.mode === 'auto'
        ? 'The law is fixed'
        : `In mode ${params.mode} no law moves the limits`;
    notes.push(`${what}: these bounds are for what people set, with \`flyball pin\`.`);
  }
  const name = policy?.limiter.downstream?.name;
  if (name !== undefined) notes.push(`Its share of ${name} still binds.`);
  return notes;
}

function policyOf({ policy, limiter }: Facts): Policy {
  if (policy !== null) return policy;
  throw new FlyballError(
    'FLYBALL_E_ACTUATE_REFUSED',
    `the adopted policy of ${limiter} cannot be read, so its own bounds are not known. Run flyball run, which adopts it anew.`,
  );
}
