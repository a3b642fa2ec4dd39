/** The checks of a breaker: each level against its signal, and whether what it says can come about. Stage: policy. */
import { checkLevel, signalNamed } from './checks-signals.js';
import { at, type Draft, type Report } from './draft.js';
import { isTripping } from './kinds.js';
import type { Signal } from './schema.js';
import { show } from './units.js';

type BreakerDraft = NonNullable<Draft['breaker']>;
type TripDraft = Pick<BreakerDraft, 'on' | 'above' | 'per'>;

export function checkBreaker(draft: Draft, raw: unknown, report: Report): void {
  const { breaker } = draft;
  if (!breaker) return;
  const signal = checkTrip(draft, breaker, 'breaker', at(raw, 'breaker'), report);
  breaker.or?.forEach((trip, i) => {
    checkTrip(draft, trip, `breaker.or.${i}`, at(raw, 'breaker', 'or', i), report);
  });
  checkSameTwice(breaker, report);
  if (breaker.shed === 'proportional' && signal && !isShare(signal)) {
    report(
      'breaker.shed',
      `is "proportional", but ${show(breaker.on)} is not a share of the answers, so there is nothing to be in proportion to. Watch telemetry.errorRatio(), timeoutRatio() or slowRatio(), and put this level into breaker.or.`,
    );
  }
  checkWayBack(draft, breaker, report);
}

function checkTrip(
  draft: Draft,
  { on, above, per }: TripDraft,
  field: string,
  written: unknown,
  report: Report,
): Signal | undefined {
  if (on === undefined) return undefined;
  const signal = signalNamed(draft, on, `${field}.on`, report);
  if (!signal) return undefined;
  if (!isTripping(signal)) {
    const instead = signal.stat === 'latency' ? ' For slow answers: telemetry.slowRatio().' : '';
    report(
      `${field}.on`,
      `names ${show(on)}, which is not of failures, nor a number of the database or another source. Name one made by telemetry.errorRatio(), timeoutRatio(), slowRatio() or failuresInARow(), upstreamErrors(), or one of another source.${instead}`,
    );
    return undefined;
  }
  checkLevel(signal, on, `${field}.above`, at(written, 'above'), above, report);
  if (isShare(signal) && above === 1) {
    report(`${field}.above`, 'is 1: no ratio is above it, so it would never trip. Lower it.');
  }
  if (signal.stat === 'failuresInARow' && per !== undefined) {
    report(
      `${field}.per`,
      'has no meaning for failures in a row: they have no window. Leave it out.',
    );
  }
  return signal;
}

/** A share of the answers. */
function isShare({ stat }: Signal): boolean {
  return stat === 'errorRatio' || stat === 'timeoutRatio' || stat === 'slowRatio';
}

/** How far back a signal is kept is its own; two levels of one signal would share it. */
function checkSameTwice(breaker: BreakerDraft, report: Report): void {
  const names = [breaker.on, ...(breaker.or ?? []).map(({ on }) => on)];
  names.forEach((on, i) => {
    if (i === 0 || on === undefined || names.indexOf(on) === i) return;
    report(
      `breaker.or.${i - 1}.on`,
      `names ${show(on)}, which has a level already. Give one level a signal: for another window, name the same signal again in signals.`,
    );
  });
}

function checkWayBack(draft: Draft, breaker: BreakerDraft, report: Report): void {
  const { probeRate, openFor, openForMax, successes, probeDeadline } = breaker;
  const rate = draft.limiter?.rate;
  if (probeRate !== undefined && rate !== undefined && probeRate > rate) {
    report(
      'breaker.probeRate',
      `is ${probeRate} but limiter.rate is ${rate}. Lower it to at most ${rate}.`,
    );
  }
  if (openFor !== undefined && openForMax !== undefined && openFor > openForMax) {
    report(
      'breaker.openFor',
      `is ${openFor} ms but breaker.openForMax is ${openForMax} ms. Lower openFor or raise openForMax.`,
    );
  }
  if (probeRate === undefined || probeDeadline === undefined || successes === undefined) return;
  // Tokens that half-open pays out before its deadline; a probe of the largest cost takes that many.
  const probes = Math.floor((probeRate * probeDeadline) / 1000 / (draft.limiter?.maxCost ?? 1));
  if (probes < successes) {
    report(
      'breaker.successes',
      `is ${successes}, but at probeRate ${probeRate} only ${probes} probes fit in probeDeadline (${probeDeadline} ms), so half-open could never close. Lower successes, or raise probeRate or probeDeadline.`,
    );
  }
}
