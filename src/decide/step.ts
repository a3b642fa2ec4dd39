/** The heart: policy, state and sample → proposal. The breaker's table first, then the law. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { observeLoop } from '../tune/loop.js';
import { DEFAULT_LOOP, fitLoop, loopTerms, tuningOf } from '../tune/loop-fit.js';
import { adaptiveLaw } from './adaptive.js';
import { aimdLaw } from './aimd.js';
import { boundsOf, capacityFor, clamp } from './bounds.js';
import { transition } from './breaker.js';
import { type Draft, passedDraft, stoppedDraft } from './breaker-draft.js';
import { afterTrip, breakerVerdict, observe } from './breaker-events.js';
import { fixedLaw } from './fixed.js';
import type { Law, LawResult } from './law.js';
import { piLaw } from './pi.js';
import { sentence } from './reasons.js';
import { afterShed, shedDraft, unprovenPart } from './shed.js';
import { ramp } from './slow-start.js';
import { createDecideState } from './state.js';
import { stepLaw } from './step-law.js';
import type { DecideState, Proposal, Sample } from './types.js';

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
  const before = state.law === policy.control.law ? state : createDecideState(policy);
  const from = { ...before, memory: withLoop(policy, before.memory, sample) };
  const { inForce } = sample;
  const breaker = observe(policy, from.memory.breaker, sample);
  const verdict = breakerVerdict(policy, breaker, sample);
  const { event } = verdict;
  const next = transition(inForce.state, event);
  const done = (memory: DecideState['memory'], proposal: Draft) => ({
    state: { law: from.law, memory },
    proposal: finish(policy, sample, proposal),
  });

  if (next === 'open' || next === 'half-open') {
    const draft = stoppedDraft(policy, breaker, sample, verdict);
    const memory = event === 'none' ? breaker : afterTrip(policy, breaker, sample, verdict.news);
    return done({ ...from.memory, breaker: memory }, draft);
  }
  if (event === 'probes_passed') {
    const draft = passedDraft(policy, breaker, sample, verdict.why);
    return done({ ...from.memory, breaker, law: {} }, draft);
  }

  const { loop } = from.memory;
  const fit = fitLoop(loop);
  const tuning = loop === undefined ? DEFAULT_LOOP : tuningOf(fit, loop.rateOnly);
  const law = LAWS[policy.control.law](policy, from.memory.law, sample, tuning);
  if (loop !== undefined) Object.assign(law.terms, loopTerms(fit, tuning));
  const memory = { ...from.memory, breaker, law: law.memory };
  if (event === 'shed') {
    const draft = shedDraft(policy, breaker, sample, verdict);
    return done({ ...memory, breaker: afterShed(breaker, sample) }, draft);
  }
  if (next === 'recovering') {
    const shed = unprovenPart(policy, sample);
    const draft =
      shed === null ? ramp(policy, breaker, sample, law) : shedDraft(policy, breaker, sample, shed);
    return done(memory, draft);
  }
  return done(memory, lawDraft(sample, law));
}

/** The memory with what this tick shows of the loop; only `adaptive` is tuned by it. */
function withLoop(
  policy: Policy,
  memory: DecideState['memory'],
  sample: Sample,
): DecideState['memory'] {
  const { loop: before, ...rest } = memory;
  if (policy.control.law !== 'adaptive') return rest;
  const loop = observeLoop(policy, before, memory.law, sample);
  return loop === undefined ? rest : { ...rest, loop };
}

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
