/** First numbers of a policy from what was measured of a service, with headroom, and why each is what it is. Pure. Stage: cli. */

/** What `--fit` saw; null: nobody told. */
export interface Fit {
  seconds: number;
  /** Requests seen, and the most a second, by the busiest of the seconds but one in twenty. */
  requests: number;
  perSecond: number | null;
  p95Ms: number | null;
  /** Failed ÷ ended. */
  errorRatio: number | null;
  /** Most requests under way at once. */
  inFlight: number | null;
  /** Most sessions that waited in the database, and `12 of 97` connections in use. */
  waiting: number | null;
  connections: string | null;
  /** What answered, and what did not, in its own words. */
  from: string[];
  missing: string[];
}

export interface Given {
  rate: number | undefined;
  inFlight: number | undefined;
}

/** A number and where it is from, in a few words for the line that holds it. */
export interface Sized {
  value: number;
  why: string;
}

export interface Sizes {
  rate: Sized;
  /** Two seconds' worth: how large a burst may be. */
  capacity: number;
  /** null: no cap. */
  inFlight: Sized | null;
  p95Ms: Sized;
  /** %. */
  errorPercent: Sized;
  waiting: Sized;
}

/** Over what was seen: a busy hour is not in ten minutes. */
const HEADROOM = 1.5;
/** A cap corrects itself and a queue is short: it gets more room than the rate. */
const CAP_HEADROOM = 2;
const UNMEASURED = { rate: 100, p95Ms: 250, errorPercent: 1, waiting: 5 };

export function sizesOf(fit: Fit | null, given: Given): Sizes {
  const rate =
    given.rate === undefined ? measuredRate(fit) : { value: given.rate, why: 'as given' };
  const capacity = Math.max(1, Number((rate.value * 2).toPrecision(3)));
  return { rate, capacity, inFlight: capOf(fit, given), ...objectives(fit) };
}

function measuredRate(fit: Fit | null): Sized {
  const seen = fit?.perSecond ?? 0;
  if (seen <= 0) return { value: UNMEASURED.rate, why: 'a guess: nothing was measured' };
  return {
    value: Math.min(100_000, Math.max(1, up(seen * HEADROOM))),
    why: `${HEADROOM} × the ${short(seen)}/s seen`,
  };
}

/** Little's law, N = λ · W, stands in where nobody tells how many are under way. */
function capOf(fit: Fit | null, given: Given): Sized | null {
  if (given.inFlight !== undefined) return { value: given.inFlight, why: 'as given' };
  if (fit === null) return null;
  const { inFlight, perSecond, p95Ms } = fit;
  const littles = perSecond !== null && p95Ms !== null ? (perSecond * p95Ms) / 1000 : null;
  const seen = Math.max(inFlight ?? 0, littles ?? 0);
  if (seen <= 0) return null;
  const told = inFlight !== null && inFlight >= (littles ?? 0);
  const why = told
    ? `${CAP_HEADROOM} × the ${short(inFlight)} seen at once`
    : `${CAP_HEADROOM} × ${short(perSecond!)}/s × ${short(p95Ms!)} ms`;
  // Below four one slow request would turn away its neighbours.
  return { value: Math.min(100_000, Math.max(4, Math.ceil(seen * CAP_HEADROOM))), why };
}

function objectives(fit: Fit | null): Pick<Sizes, 'p95Ms' | 'errorPercent' | 'waiting'> {
  const of = (seen: number | null | undefined, least: number, byDefault: number, unit: string) => {
    if (seen === null || seen === undefined) return { value: byDefault, why: '' };
    const value = up(Math.max(least, seen * HEADROOM));
    return { value, why: `${short(seen)}${unit} was seen` };
  };
  const percent = fit?.errorRatio == null ? null : 100 * fit.errorRatio;
  return {
    p95Ms: of(fit?.p95Ms, 20, UNMEASURED.p95Ms, ' ms'),
    errorPercent: of(percent, UNMEASURED.errorPercent, UNMEASURED.errorPercent, ' %'),
    waiting: of(fit?.waiting, UNMEASURED.waiting, UNMEASURED.waiting, ''),
  };
}

/** Up to two digits: 147 → 150. */
function up(value: number): number {
  const unit = 10 ** Math.max(-1, Math.floor(Math.log10(value)) - 1);
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(3));
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
