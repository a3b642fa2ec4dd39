/** What a limiter's history says its numbers should be, each with its band, its reasons and what binds. Stage: tune. */
import { boundsOf, clamp } from '../decide/bounds.js';
import type { Policy } from '../policy/schema.js';
import type { HistoryRow } from '../redis/history-rows.js';
import { type Band, bandOf, blocksOf, spanOf } from './band.js';
import { type FoundKnee, findKnee } from './find-knee.js';
import { capacityFrom, type ServiceFacts } from './from-history.js';
import { passedOf, rateOf } from './rate.js';
import { show, type Usable, usableMinutes } from './usable.js';

/** Below this nothing is said: a day's peak must have been seen (the newest minute may not be written yet). */
export const LEAST_HISTORY_MS = 23.5 * 3_600_000;
/** And so many minutes, or a 95th percentile is a guess. */
export const LEAST_MINUTES = 360;

export interface TuneInput {
  policy: Policy;
  history: readonly HistoryRow[];
  inForce: { rate: number; capacity: number; inFlightMax: number };
  facts: ServiceFacts;
  /** Numbers in [0, 1): the same ones give the same bands. */
  random: () => number;
}

export interface Tuned {
  /** Within the policy's bounds. */
  value: number;
  /** What the history says, before the bounds. */
  wanted: number;
  inForce: number;
  /** null: too little to say. */
  band: Band | null;
  /** The bound of the policy or of the service that the value rests on. */
  binds: string;
  /** One sentence with the numbers. */
  why: string;
}

export interface Recommendation {
  status: 'ready';
  minutes: { used: number; leftOut: Usable['leftOut']; fromMs: number; toMs: number };
  rate: Tuned;
  /** null: what it would be computed from is not known; `missing` says what. */
  capacity: Tuned | null;
  inFlightMax: Tuned | null;
  /** Bounds to write into the policy; null without a knee. */
  bounds: { rate: { min: number; max: number }; inFlight: { min: number; max: number } } | null;
  knee: FoundKnee | null;
  missing: string[];
}

export interface NoRecommendation {
  status: 'refused';
  sentence: string;
  minutes: Recommendation['minutes'];
}

/**
 *   rate     = 95th percentile of good answers per second over the usable minutes (`usable.ts` says which are left
 *              out); not lowered below what passed in healthy minutes in which the limit denied, or each tuning
 *              would cut what the last one had cut; at most connections ÷ hold time
 *   capacity = max(rate, min(slots, connections)) as in `capacity.ts`
 *   cap      = the knee of the fitted curve, `knee.ts`: 95 % of the peak throughput at the least in flight
 *   bounds   = rate: a tenth of the knee's throughput … 1.2 times the most; cap: a tenth … 1.5 times the knee
 *
 * All are then brought within the policy's bounds, and `binds` says so.
 */
export function recommend(input: TuneInput): Recommendation | NoRecommendation {
  const { policy, history, inForce, facts, random } = input;
  const usable = usableMinutes(history);
  const minutes = {
    used: usable.rows.length,
    leftOut: usable.leftOut,
    fromMs: usable.fromMs,
    toMs: usable.toMs,
  };
  const short = tooShort(usable, history);
  if (short !== null) return { status: 'refused', sentence: short, minutes };

  const bounds = boundsOf(policy);
  const spanMs = spanOf(usable.rows);
  const found = findKnee(history, random);
  const missing = found.missing === null ? [] : [found.missing];
  const knee = found.knee;

  const blocks = blocksOf(usable.rows);
  const passed = passedOf(blocks);
  const shown = rateOf(passed);
  const rateAt = (times: Uint16Array) => rateOf(passed, times).value;
  const band = bandOf(shown.value, blocks.length, rateAt, { random, spanMs });
  const sized = capacityFrom(usable.rows, facts, knee, shown.value);
  if (sized.missing !== null) missing.push(sized.missing);
  const wantedRate = sized.sized?.rate ?? shown.value;
  const most = sized.sized?.byConnections ?? Number.POSITIVE_INFINITY;
  const rateWhy =
    wantedRate < shown.value ? `${shown.why} ${sized.sized?.sentence ?? ''}`.trim() : shown.why;
  const rate: Tuned = bounded(
    { wanted: Math.min(round(wantedRate), most), inForce: inForce.rate, band, why: rateWhy },
    wantedRate < shown.value ? 'connections' : shown.binds,
    bounds.rate,
    policy.bounds === undefined ? 'rate of the policy' : 'bounds.rate',
  );
  const capacity =
    sized.sized === null
      ? null
      : bounded(
          {
            wanted: sized.sized.capacity,
            inForce: inForce.capacity,
            band: null,
            why: sized.sized.sentence,
          },
          sized.sized.binds,
          policy.bounds?.capacity ?? { min: 1, max: Number.POSITIVE_INFINITY },
          'bounds.capacity',
        );
  return {
    status: 'ready',
    minutes,
    rate,
    // A bucket below a second of the rate that the bounds leave would deny what the rate admits.
    capacity: capacity === null ? null : atLeastRate(capacity, rate.value, policy),
    inFlightMax:
      knee === null
        ? null
        : bounded(
            {
              wanted: Math.max(1, Math.round(knee.inFlight)),
              inForce: inForce.inFlightMax,
              band: found.band,
              why: `At ${show(knee.inFlight)} in flight throughput is ${show(knee.perSecond)}/s of at most ${show(knee.mostPerSecond)}/s (fit: R² ${show(knee.quality)}); more only waits longer.`,
            },
            'knee',
            bounds.inFlight ?? { min: 1, max: Number.POSITIVE_INFINITY },
            'bounds.inFlight',
          ),
    bounds: knee === null ? null : boundsFrom(knee, rate.wanted),
    knee,
    missing,
  };
}

function tooShort(usable: Usable, history: readonly HistoryRow[]): string | null {
  const spanMs = spanOf(history);
  const long =
    spanMs < 3_600_000 ? `${show(spanMs / 60_000)} min` : `${show(spanMs / 3_600_000)} h`;
  const left = Object.entries(usable.leftOut)
    .filter(([, count]) => count > 0)
    .map(([why, count]) => `${count} ${why}`)
    .join(', ');
  const out = left === '' ? '' : ` Left out: ${left}.`;
  const need = `a day with ${LEAST_MINUTES} usable minutes is needed, so that its peak has been seen`;
  if (spanMs < LEAST_HISTORY_MS) {
    return `The history reaches back ${long}, and ${need}. Wait, or use \`flyball size\`.${out}`;
  }
  if (usable.rows.length < LEAST_MINUTES) {
    return `${usable.rows.length} minutes of the history can be used, and ${need}.${out}`;
  }
  if (usable.rows.every((row) => row.ok === 0)) {
    return `Nobody reports how requests end, so good throughput is not known: call \`release()\` or use a middleware.${out}`;
  }
  return null;
}

/** The rate that is recommended lies within them, however short of it the curve falls. */
function boundsFrom(knee: FoundKnee, rate: number): NonNullable<Recommendation['bounds']> {
  return {
    rate: {
      min: round(Math.min(knee.perSecond / 10, rate)),
      max: Math.ceil(1.2 * Math.max(knee.mostPerSecond, rate)),
    },
    inFlight: {
      min: Math.max(1, Math.floor(knee.inFlight / 10)),
      max: Math.ceil(1.5 * knee.inFlight),
    },
  };
}

function bounded(
  tuned: Omit<Tuned, 'value' | 'binds'>,
  binds: string,
  range: { min: number; max: number },
  name: string,
): Tuned {
  const value = clamp(tuned.wanted, range.min, range.max);
  if (value === tuned.wanted) return { ...tuned, value, binds };
  return { ...tuned, value, binds: `${name}.${value < tuned.wanted ? 'max' : 'min'}` };
}

function atLeastRate(capacity: Tuned, rate: number, policy: Policy): Tuned {
  const least = Math.ceil(rate);
  if (capacity.value >= least) return capacity;
  const max = policy.bounds?.capacity?.max ?? Number.POSITIVE_INFINITY;
  return max < least
    ? { ...capacity, value: max, binds: 'bounds.capacity.max' }
    : { ...capacity, value: least, binds: 'rate' };
}

/** Three digits: more would only look exact. */
function round(value: number): number {
  return Number(value.toPrecision(3));
}
