/** The heart: policy, state and sample → proposal. The breaker's table first, then the law. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { adaptiveLaw } from './adaptive.js';
import { aimdLaw } from './aimd.js';
import { boundsOf, capacityFor, clamp } from './bounds.js';
import { transition } from './breaker.js';
import { afterTrip, breakerEvent, observe, openForMs } from './breaker-events.js';
import { fixedLaw } from './fixed.js';
import type { Law, LawResult } from './law.js';
import { piLaw } from './pi.js';
import { num, type Reason, sentence } from './reasons.js';
import { ramp, rampStart } from './slow-start.js';
import { createDecideState } from './state.js';
import { stepLaw } from './step-law.js';
import type { BreakerMemory, DecideState, Proposal, Sample } from './types.js';

export const LAWS: Record<Policy['control']['law'], Law> = {
  adaptive: adaptiveLaw,
  step: stepLaw,
  aimd: aimdLaw,
  pi: piLaw,
  fixed: fixedLaw,
};

/**
 * One tick of deciding. Pure: the same policy, state and sample give the same proposal; the state given is
 * not touched. What the numbers mean while the breaker is open: see `Proposal`.
 */
export function step(
  policy: Policy,
  state: DecideState,
  sample: Sample,
): { state: DecideState; proposal: Proposal } {
  const from = state.law === policy.control.law ? state : createDecideState(policy);
  const { inForce } = sample;
  const breaker = observe(policy, from.memory.breaker, sample);
  const event = inForce.holdBreaker ? 'none' : breakerEvent(policy, breaker, sample);
  const next = transition(inForce.state, event);
  const done = (memory: DecideState['memory'], proposal: Draft) => ({
    state: { law: from.law, memory },
    proposal: finish(policy, sample, proposal),
  });

  if (next === 'open' || next === 'half-open') {
    const draft = breakerDraft(policy, breaker, sample, event);
    const memory = event === 'none' ? breaker : afterTrip(breaker, sample);
    return done({ ...from.memory, breaker: memory }, draft);
  }

  if (event === 'probes_passed') {
    // A person's value comes back as it is; the law's own comes back by a slow start.
    const held = inForce.held !== 'none';
    const at = held ? inForce.target : rampStart(policy, breaker, sample);
    const why = `${breaker.probesOk} probes passed`;
    const draft = {
      ...at,
      state: held ? ('closed' as const) : ('recovering' as const),
      cause: 'breaker' as const,
      reason: 'breaker_recovering' as const,
      why,
      terms: {},
    };
    return done({ ...from.memory, breaker, law: {} }, draft);
  }

  const law = LAWS[policy.control.law](policy, from.memory.law, sample);
  const memory = { ...from.memory, breaker, law: law.memory };
  if (next === 'recovering') return done(memory, ramp(policy, breaker, sample, law));
  return done(memory, lawDraft(sample, law));
}

type Draft = Omit<Proposal, 'capacity' | 'sentence' | 'reason'> & { reason: Reason };

function lawDraft(sample: Sample, law: LawResult): Draft {
  const { gliding } = sample.inForce;
  return {
    state: 'closed',
    rate: law.rate,
    inFlightMax: law.inFlightMax,
    cause: gliding ? 'settle' : 'law',
    reason: gliding ? 'law_settle' : law.reason,
    why: law.why,
    terms: law.terms,
  };
}

function breakerDraft(
  policy: Policy,
  breaker: BreakerMemory,
  sample: Sample,
  event: ReturnType<typeof breakerEvent>,
): Draft {
  const { inForce, outcomes } = sample;
  // A trip out of the slow start leads back to the last good values, not to where the start had got.
  const resume = event === 'trip' && inForce.held === 'none' ? breaker.resume : null;
  const keep = resume ?? inForce.target;
  const base = {
    rate: keep.rate,
    inFlightMax: keep.inFlightMax,
    cause: 'breaker' as const,
    terms: { level: breaker.level, probesOk: breaker.probesOk, probesFailed: breaker.probesFailed },
  };
  const answers = outcomes.ok + outcomes.failed;
  const open = openForMs(policy, breaker);
  const opened = { ...base, state: 'open' as const, openForMs: open };
  const forText = `; open for ${num(open / 1000)} s`;
  switch (event) {
    case 'trip': {
      const why = `${num(outcomes.matching)} failures of ${num(answers)} answers in ${num(outcomes.windowMs / 1000)} s${forText}`;
      return { ...opened, reason: 'breaker_trip', why };
    }
    case 'probe_failed': {
      const why = `${num(breaker.probesFailed)} of ${num(breaker.probesFailed + breaker.probesOk)} probes failed${forText}`;
      return { ...opened, reason: 'breaker_probe_failed', why };
    }
    case 'probe_deadline': {
      const why = `no verdict of the probes in ${num(breaker.probingMs / 1000)} s${forText}`;
      return { ...opened, reason: 'breaker_probe_deadline', why };
    }
    default: {
      const probing = inForce.state === 'half-open';
      const reason = probing ? 'breaker_probing' : 'breaker_open';
      const why = probing ? `half-open: ${num(breaker.probesOk)} probes passed so far` : 'open';
      return { ...base, state: inForce.state, reason, why };
    }
  }
}

function finish(policy: Policy, sample: Sample, draft: Draft): Proposal {
  const bounds = boundsOf(policy);
  const finite = Number.isFinite(draft.rate) ? draft.rate : sample.inForce.target.rate;
  const rate = clamp(finite, 0, Math.max(bounds.rate.max, sample.inForce.target.rate));
  const proposal: Proposal = {
    ...draft,
    rate,
    capacity:
      rate === sample.inForce.target.rate
        ? sample.inForce.target.capacity
        : capacityFor(policy, rate),
    sentence: '',
  };
  proposal.sentence = sentence(proposal.why, sample.inForce, proposal);
  return proposal;
}
