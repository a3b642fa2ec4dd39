/** The bounds that a person asks for, and whether they may be. Pure. Stage: actuate. */
import { type Facts, short } from './plan.js';
import { WishFault } from './wish-fault.js';

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
    throw new WishFault((name) => {
      const [rate, cap] = ['rate', 'inFlight'].map(
        (of) => `${name(`${of}Min`)}, ${name(`${of}Max`)}`,
      );
      return `give ${rate}, ${cap}, or ${name('clear')} to end those that hold.`;
    });
  }
  within('rateMin', rateMin, RATE, false);
  within('rateMax', rateMax, RATE, false);
  within('inFlightMin', inFlightMin, CAP, true);
  within('inFlightMax', inFlightMax, CAP, true);
  ordered('rate', rateMin, rateMax, own.rate);
  if (rateMax !== undefined && rateMax < params.probeRate) {
    throw new WishFault(
      (name) =>
        `${name('rateMax')} is ${rateMax}, below the ${short(params.probeRate)}/s at which the breaker probes. To let less pass: flyball pin ${limiter} --rate ${rateMax}, or flyball trip ${limiter}.`,
    );
  }
  if (inFlightMin === undefined && inFlightMax === undefined) return;
  if (own.inFlight === null) {
    const [field, cap] =
      inFlightMin === undefined ? ['inFlightMax', inFlightMax] : ['inFlightMin', inFlightMin];
    throw new WishFault(
      (name) =>
        `${name(field)} is ${cap}, but ${limiter} has no in-flight cap: its policy gives no limiter.inFlightMax. Bound the rate instead.`,
    );
  }
  ordered('inFlight', inFlightMin, inFlightMax, own.inFlight);
}

function within(
  field: string,
  value: number | undefined,
  { min, max }: typeof RATE,
  whole: boolean,
): void {
  if (value === undefined || (value >= min && value <= max && (!whole || Number.isInteger(value))))
    return;
  const what = `${whole ? 'a whole number ' : ''}${min} … ${max}`;
  throw new WishFault((name) => `${name(field)} is ${value}; ${what} is allowed.`);
}

function ordered(
  of: 'rate' | 'inFlight',
  min: number | undefined,
  max: number | undefined,
  own: typeof RATE,
): void {
  const [low, high] = [min ?? own.min, max ?? own.max];
  if (low <= high) return;
  if (min !== undefined && max !== undefined) {
    throw new WishFault(
      (name) =>
        `${name(`${of}Min`)} is ${min} and ${name(`${of}Max`)} is ${max}: the least may not lie above the most. Swap them.`,
    );
  }
  const [said, missing] = min === undefined ? ['Max', 'Min'] : ['Min', 'Max'];
  const bound = missing === 'Min' ? `least is ${short(own.min)}` : `most is ${short(own.max)}`;
  throw new WishFault(
    (name) =>
      `${name(of + said)} is ${max ?? min}, but the ${bound}: give ${name(of + missing)} too.`,
  );
}
