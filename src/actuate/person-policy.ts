/** What a person set in place of the policy's own, when another policy is adopted: what stands, and what is told of it. Pure. Stage: actuate. */
import { clamp } from '../decide/bounds.js';
import { inWindows } from '../policy/person-bounds.js';
import type { Policy } from '../policy/schema.js';
import { type ByPerson, PERSONAL_NUMBERS, parseByPerson } from '../redis/by-person.js';
import type { Mode, ParamChange, Params } from '../redis/params.js';
import { parseWindows } from '../redis/windows.js';

/** The policy's own numbers, in the words of params. */
export function policyNumbers({ limiter }: Policy) {
  const { rate, capacity, inFlightMax = 0 } = limiter;
  return { rate, capacity, inFlightMax };
}

/**
 * What of it stands beside this policy: each part for as long as the policy's own is what it was set in place of. Where
 * the law moves the numbers, those of a person are where it began, and no more.
 */
export function standsBeside(policy: Policy, text: string): { said: ByPerson; mode: Mode } {
  const { mode: asked, ...before } = parseByPerson(text);
  const said: ByPerson = {};
  if (asked !== undefined && asked.over === policy.mode) said.mode = asked;
  const mode = said.mode?.is ?? policy.mode;
  const own = policyNumbers(policy);
  for (const field of PERSONAL_NUMBERS) {
    const number = before[field];
    if (number !== undefined && number.over === own[field] && mode !== 'auto') said[field] = number;
  }
  return { said, mode };
}

/** Where no law moves them: the policy's numbers as its profile makes them, else those that a person set. */
export function numbersInPlace(
  policy: Policy,
  said: ByPerson,
  /** A profile's numbers end with it: those of a person stand beside the policy's own alone. */
  profile: boolean,
  bounds: Pick<
    ParamChange,
    'minRate' | 'maxRate' | 'minCapacity' | 'maxCapacity' | 'minInFlight' | 'maxInFlight'
  >,
): { rate: number; capacity: number; inFlightMax: number } {
  const own = policyNumbers(policy);
  const { rate, capacity, inFlightMax } = profile ? {} : said;
  const within = (value: number, min = 0, max = value) => clamp(value, min, max);
  // The policy's own lie within its bounds, but not always within those that a person set for a while.
  return {
    rate: within(rate?.is ?? own.rate, bounds.minRate, bounds.maxRate),
    capacity: within(capacity?.is ?? own.capacity, bounds.minCapacity, bounds.maxCapacity),
    inFlightMax: within(inFlightMax?.is ?? own.inFlightMax, bounds.minInFlight, bounds.maxInFlight),
  };
}

/** What is in force where nothing moves it: no law, no hold, no breaker. */
export function restingNumbers(
  policy: Policy,
  params: Params,
): { rate: number; capacity: number; inFlightMax: number } {
  const windows = parseWindows(params.windows);
  const { said } = standsBeside(policy, params.byPerson);
  return numbersInPlace(inWindows(policy, windows), said, windows.profile !== undefined, params);
}

/** `; mode auto stays, as ada set it`; empty: nothing stands. */
export function standsTold(said: ByPerson): string {
  const names: Record<string, string> = {
    rate: 'the rate',
    capacity: 'the capacity',
    inFlightMax: 'the cap',
  };
  const numbers = PERSONAL_NUMBERS.flatMap((field) => {
    const number = said[field];
    return number === undefined
      ? []
      : [`${names[field]} ${number.is} stays, as ${number.by} approved it`];
  });
  const mode =
    said.mode === undefined ? [] : [`mode ${said.mode.is} stays, as ${said.mode.by} set it`];
  return [...mode, ...numbers].map((each) => `; ${each}`).join('');
}

/**
 * A person put `to` in place of `from`: a daemon that starts with the file they replaced must not adopt that again.
 * Of several in a row, the first that was replaced counts, for it is what the files say.
 */
export function replacedBy(
  text: string,
  change: { from: string; to: string; by: string },
): ByPerson['policy'] | undefined {
  const over = parseByPerson(text).policy?.over ?? change.from;
  return over === change.to ? undefined : { is: change.to, over, by: change.by };
}

/** Is that the policy which a person replaced? Then who they were. */
export function wasReplaced(text: string, hash: string): string | null {
  const { policy } = parseByPerson(text);
  return policy?.over === hash ? policy.by : null;
}
