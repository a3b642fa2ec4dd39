/** What the breaker wants of a tick, in numbers and words: open, probing, back by a slow start, or a part shed. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { openForMs, type Verdict } from './breaker-events.js';
import type { BreakerMemory } from './breaker-types.js';
import { num, type Reason } from './reasons.js';
import { rampStart } from './slow-start.js';
import type { Proposal, Sample } from './types.js';

/** A proposal before its rate is bounded, and without its capacity. */
export type Draft = Omit<Proposal, 'capacity' | 'reason'> & { reason: Reason };

const OPENING: Partial<Record<Verdict['event'], Reason>> = {
  trip: 'breaker_trip',
  probe_failed: 'breaker_probe_failed',
  probe_deadline: 'breaker_probe_deadline',
};

/** Open or half-open: what is stored stays, for the way back. */
export function stoppedDraft(
  policy: Policy,
  breaker: BreakerMemory,
  sample: Sample,
  { event, why, news }: Verdict,
): Draft {
  const { inForce } = sample;
  // A trip out of the slow start leads back to the last good values, not to where the start had got.
  const resume = event === 'trip' && inForce.held === 'none' ? breaker.resume : null;
  const { rate, inFlightMax } = resume ?? inForce.target;
  const { level, probesOk, probesFailed } = breaker;
  const base = {
    ...{ rate, inFlightMax, cause: 'breaker' as const },
    terms: { level, probesOk, probesFailed },
  };
  const reason = OPENING[event];
  if (reason !== undefined) {
    const open = openForMs(policy, breaker, news);
    return {
      ...base,
      state: 'open',
      openForMs: open,
      reason: news === null ? reason : 'breaker_upstream',
      why: `${why}; open for ${num(open / 1000)} s`,
    };
  }
  if (inForce.state === 'half-open') {
    const soFar = `half-open: ${num(probesOk)} probes passed so far`;
    return { ...base, state: 'half-open', reason: 'breaker_probing', why: soFar };
  }
  return { ...base, state: inForce.state, reason: 'breaker_open', why: 'open' };
}

/** A person's value comes back as it is; the law's own comes back by a slow start. */
export function passedDraft(
  policy: Policy,
  breaker: BreakerMemory,
  sample: Sample,
  why: string,
): Draft {
  const held = sample.inForce.held !== 'none';
  const { rate, inFlightMax } = held ? sample.inForce.target : rampStart(policy, breaker, sample);
  return {
    ...{ rate, inFlightMax, cause: 'breaker', reason: 'breaker_recovering', why, terms: {} },
    state: held ? 'closed' : 'recovering',
  };
}
