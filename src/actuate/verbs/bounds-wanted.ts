/** The bounds that a person asks for, and whether they may be. Pure. Stage: actuate. */
import { FlyballError } from '../../errors.js';
import { type Facts, short } from './plan.js';

/** What a person says; what is left out stays as policy and profile say. */
export interface WantedBounds {
  rateMin?: number;
  rateMax?: number;
  inFlightMin?: number;
  inFlightMax?: number;
}

/** As an entry and a preview tell them. */
export interface BoundsTold {
  rate: { min: number; max: number };
  /** null: no cap. */
  inFlight: { min: number; max: number } | null;
}

const RATE = { min: 1e-6, max: 1e6 };
const CAP = { min: 1, max: 1e6 };

/** Throws with what is wrong, what is allowed and the mend; `own` is what holds without them. */
export function checkWanted(
  wanted: WantedBounds,
  { limiter, params }: Facts,
  own: BoundsTold,
): void {
  const { rateMin, rateMax, inFlightMin, inFlightMax } = wanted;
  if ([rateMin, rateMax, inFlightMin, inFlightMax].every((one) => one === undefined)) {
    throw bad(
      'give --rate-min, --rate-max, --in-flight-min or --in-flight-max, or --clear to end those that hold.',
    );
  }
  within('--rate-min', rateMin, RATE, false);
  within('--rate-max', rateMax, RATE, false);
  within('--in-flight-min', inFlightMin, CAP, true);
  within('--in-flight-max', inFlightMax, CAP, true);
  ordered('--rate', rateMin, rateMax, own.rate);
  if (rateMax !== undefined && rateMax < params.probeRate) {
    throw bad(
      `--rate-max is ${rateMax}, below the ${short(params.probeRate)}/s at which the breaker probes. To let less pass: flyball pin ${limiter} --rate ${rateMax}, or flyball trip ${limiter}.`,
    );
  }
  if (inFlightMin === undefined && inFlightMax === undefined) return;
  if (own.inFlight === null) {
    throw bad(
      `${limiter} has no in-flight cap: its policy gives no limiter.inFlightMax. Bound the rate instead.`,
    );
  }
  ordered('--in-flight', inFlightMin, inFlightMax, own.inFlight);
}

function within(
  name: string,
  value: number | undefined,
  { min, max }: typeof RATE,
  whole: boolean,
): void {
  if (value === undefined || (value >= min && value <= max && (!whole || Number.isInteger(value))))
    return;
  throw bad(`${name} is ${value}; ${whole ? 'a whole number ' : ''}${min} … ${max} is allowed.`);
}

function ordered(
  name: string,
  min: number | undefined,
  max: number | undefined,
  own: typeof RATE,
): void {
  const [low, high] = [min ?? own.min, max ?? own.max];
  if (low <= high) return;
  if (min !== undefined && max !== undefined) {
    throw bad(
      `${name}-min is ${min} and ${name}-max is ${max}: the least may not lie above the most. Swap them.`,
    );
  }
  const [said, missing] = min === undefined ? ['max', 'min'] : ['min', 'max'];
  const bound = missing === 'min' ? `least is ${short(own.min)}` : `most is ${short(own.max)}`;
  throw bad(`${name}-${said} is ${max ?? min}, but the ${bound}: give ${name}-${missing} too.`);
}

function bad(message: string): FlyballError {
  return new FlyballError('FLYBALL_E_CLI_USAGE', message);
}
