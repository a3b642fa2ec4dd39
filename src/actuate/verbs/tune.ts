/** Tune: what the history recommends, put in force by a person, within the bounds. Pure. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import type { ParamChange } from '../../redis/params.js';
import type { Recommendation } from '../../tune/recommend.js';
import type { EntryValues } from '../entry.js';
import { tuneDetail, tunedChange } from '../tuning.js';
import { endCommand } from './ends.js';
import { type Facts, moved, type Planner, short, standing } from './plan.js';

/** In `auto` with a law that moves, closed and held by nobody: elsewhere the numbers would not stay, or are a person's. */
export function tune(recommendation: Recommendation): Planner {
  return (facts) => {
    const { policy, params, limiter, actor } = facts;
    const { values: before, settled } = standing(facts);
    const why = obstacle(facts, recommendation);
    if (why !== null || policy === null) {
      throw new FlyballError('FLYBALL_E_ACTUATE_REFUSED', why ?? `${limiter} has no policy.`);
    }
    const change = tunedChange(policy, params, recommendation);
    if (Object.keys(change).length === 0) {
      return {
        kind: 'nothing',
        sentence: `${limiter} has what its history recommends (within ${short(100 * policy.guards.deadBand)} %).`,
      };
    }
    const after = { ...before, ...change } as EntryValues;
    const { rate } = recommendation;
    return {
      kind: 'change',
      reason: 'tune',
      before,
      after,
      agreed: ['mode', 'state', ...(Object.keys(change) as (keyof EntryValues)[])],
      change: { ...settled, ...change },
      sentence: `${actor} tuned ${limiter} from its history: ${moved(before, after)}. ${rate.why}`,
      detail: tuneDetail(recommendation),
      notes: notesOf(facts, recommendation, change),
    };
  };
}

/** Why it may not be put in force now, with what to do instead; null: it may. */
export function obstacle(facts: Facts, { rate, inFlightMax }: Recommendation): string | null {
  const { params, policy, limiter, nowMs } = facts;
  const { now, pinned, frozen } = standing({ ...facts, nowMs });
  if (policy === null) {
    return `the adopted policy of ${limiter} cannot be read, so its bounds are not known.`;
  }
  if (pinned || frozen) {
    const held = pinned ? 'pinned' : 'frozen';
    return `${limiter} is ${held} by ${params.heldBy || 'a person'}: tuning leaves it alone. \`${endCommand(held, limiter)}\` ends that.`;
  }
  const fixed = policy.control.law === 'fixed';
  if (params.mode !== 'auto' || fixed) {
    const cap = inFlightMax && params.inFlightMax > 0 ? ` --in-flight ${inFlightMax.value}` : '';
    const what = params.mode === 'auto' ? 'has the law fixed' : `is in mode ${params.mode}`;
    return `${limiter} ${what}, which enforces the policy's own numbers: write these into the policy, or \`flyball pin ${limiter} --rate ${rate.value}${cap}\` holds them for a while.`;
  }
  if (now.state !== 'closed' || now.gliding) {
    return `${limiter} is ${now.gliding ? 'gliding to its safe values' : now.state}: numbers are tuned when it is closed.`;
  }
  return null;
}

function notesOf({ policy, params }: Facts, tuned: Recommendation, change: ParamChange): string[] {
  const notes = tuned.missing.map((what) => `Not known: ${what}`);
  notes.push(
    `The law ${policy?.control.law} goes on from these values; what should last belongs in the policy.`,
  );
  const [rate, capacity] = [change.rate ?? params.rate, change.capacity ?? params.capacity];
  if (capacity < rate) {
    notes.push(
      `Capacity ${short(capacity)} holds less than a second of ${short(rate)}/s: raise limiter.capacity in the policy to ${Math.ceil(rate)}.`,
    );
  }
  const { band, value } = tuned.rate;
  if (change.rate !== undefined && band !== null && band.high > 2 * band.low) {
    notes.push(
      `Rate ${short(value)}/s is not certain: ${short(Number(band.low.toPrecision(3)))} … ${short(Number(band.high.toPrecision(3)))}/s. More history narrows it.`,
    );
  }
  return notes;
}
