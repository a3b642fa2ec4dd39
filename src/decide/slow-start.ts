/** The way back from half-open: a slow start to the last good values, left early if the law sees overload. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf } from './bounds.js';
import type { BreakerMemory, LimiterNumbers } from './breaker-types.js';
import type { LawResult } from './law.js';
import { num, type Reason } from './reasons.js';
import type { Proposal, Sample } from './types.js';

/** Share of the last good values at which the slow start begins, and its growth a second. */
const BEGIN = 0.5;
const GROW = 1.35;
/** A reading that speaks of longer is one look, and proves no more growth than a second does. */
const MOST_MS = 1_000;

export function rampStart(policy: Policy, breaker: BreakerMemory, sample: Sample): LimiterNumbers {
  return share(policy, resumeOf(breaker, sample), BEGIN);
}

/** One tick of `recovering`. Raises only on fresh, answered traffic; overload ends it at once. */
export function ramp(policy: Policy, breaker: BreakerMemory, sample: Sample, law: LawResult) {
  const { inForce, traffic } = sample;
  const full = resumeOf(breaker, sample);
  const draft = (
    numbers: LimiterNumbers,
    state: Proposal['state'],
    reason: Reason,
    why: string,
    cause: Proposal['cause'] = 'breaker',
  ) => ({ ...numbers, state, cause, reason, why, terms: law.terms });
  const now = { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };

  if (inForce.held !== 'none') return draft(now, 'closed', 'breaker_closed', 'held by a person');
  if (law.reason === 'law_cut' || law.reason === 'law_emergency_cut') {
    const cut = {
      rate: Math.min(law.rate, full.rate),
      inFlightMax: Math.min(law.inFlightMax, now.inFlightMax),
    };
    const ended = draft(cut, 'closed', law.reason, `slow start ends: ${law.why}`);
    return { ...ended, over: law.over };
  }
  const reached = now.rate / full.rate;
  if (reached >= 0.999) return draft(now, 'closed', 'breaker_closed', 'slow start has arrived');
  if (!traffic.fresh || traffic.okRate === 0) {
    return draft(now, 'recovering', 'no_evidence', 'slow start waits for answers');
  }
  const next = Math.min(1, Math.max(reached, 0.01) * growth(sample));
  const arrived = next >= 0.999;
  const why = arrived ? 'slow start has arrived' : `slow start at ${num(next * 100)} %`;
  return draft(
    share(policy, full, arrived ? 1 : next),
    arrived ? 'closed' : 'recovering',
    arrived ? 'breaker_closed' : 'breaker_ramp',
    why,
  );
}

/**
 * By what factor a fresh reading lets the rate grow. It stands for its whole interval, for the ticks between two
 * readings raise nothing: at ten ticks a second the way back is not ten times as long.
 */
export function growth({ dtMs, traffic }: Sample): number {
  const spanMs = Math.max(Math.min(dtMs, 5_000), Math.min(traffic.intervalMs, MOST_MS));
  return GROW ** (Math.max(0, spanMs) / 1000);
}

/** The last good values. */
export function resumeOf(breaker: BreakerMemory, sample: Sample): LimiterNumbers {
  return breaker.resume ?? sample.inForce.target;
}

/** A part of the last good values, never below what half-open lets through. */
export function share(policy: Policy, full: LimiterNumbers, part: number): LimiterNumbers {
  const bounds = boundsOf(policy);
  const least = bounds.inFlight?.min ?? 0;
  return {
    rate: Math.min(full.rate, Math.max(bounds.probeRate, full.rate * part)),
    inFlightMax:
      full.inFlightMax === 0
        ? 0
        : Math.min(full.inFlightMax, Math.max(least, Math.round(full.inFlightMax * part))),
  };
}
