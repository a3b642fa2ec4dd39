/** The heart: policy, state and sample → proposal. The breaker's table first, then the law. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { LimiterState } from '../redis/params.js';
import { observeLoop } from '../tune/loop.js';
import { addLoopTerms, DEFAULT_LOOP, fitLoop, tuningOf } from '../tune/loop-fit.js';
import { adaptiveLaw } from './adaptive.js';
import { aimdLaw } from './aimd.js';
import { boundsOf, capacityFor, clamp } from './bounds.js';
import { transition } from './breaker.js';
import { type Draft, passedDraft, stoppedDraft } from './breaker-draft.js';
import { afterTrip, breakerVerdict, observe, type Verdict } from './breaker-events.js';
import { carriedOver, withoutPending } from './carried.js';
import { fixedLaw } from './fixed.js';
import type { Law, LawResult } from './law.js';
import { piLaw } from './pi.js';
import { afterShed, shedDraft, unprovenPart } from './shed.js';
import { ramp } from './slow-start.js';
import { stepLaw } from './step-law.js';
import type { DecideState, Proposal, Sample } from './types.js';

type Memory = DecideState['memory'];

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
  const { law } = policy.control;
  const before = carriedOver(policy, state, sample);
  const memory = nextMemory(before, observe(policy, before.breaker, sample));
  // Only `adaptive` is tuned by what is seen of its loop.
  const loop =
    law === 'adaptive' ? observeLoop(policy, before.loop, before.law, sample) : undefined;
  if (loop !== undefined) memory.loop = loop;
  const draft = decide(policy, memory, sample);
  return { state: { law, memory }, proposal: finish(policy, sample, draft) };
}

/** A copy without its loop. */
function nextMemory(before: Memory, breaker: Memory['breaker']): Memory {
  const { law, guard, reserve } = before;
  return reserve === undefined ? { breaker, law, guard } : { breaker, law, guard, reserve };
}

/** What breaker and law want of the tick. Fills in what they remember of it. */
function decide(policy: Policy, memory: Memory, sample: Sample): Draft {
  const { breaker, loop } = memory;
  const verdict = breakerVerdict(policy, breaker, sample);
  const { event } = verdict;
  const next = transition(sample.inForce.state, event);

  if (next === 'open' || next === 'half-open') {
    if (event !== 'none') memory.breaker = afterTrip(policy, breaker, sample, verdict.news);
    return stoppedDraft(policy, breaker, sample, verdict);
  }
  if (event === 'probes_passed') {
    // The rate alone finds its way back by what it has carried; a cap finds out anew.
    memory.law = memory.law.rateOnly === 1 ? withoutPending(memory.law) : {};
    return passedDraft(policy, breaker, sample, verdict.why);
  }

  const fit = fitLoop(loop);
  const tuning = loop === undefined ? DEFAULT_LOOP : tuningOf(fit, loop.rateOnly);
  const law = LAWS[policy.control.law](policy, memory.law, sample, tuning);
  if (loop !== undefined) addLoopTerms(law.terms, fit, tuning);
  if (event === 'shed') memory.breaker = afterShed(breaker, sample);
  const draft = drafted(policy, breaker, sample, law, { verdict, next });
  // A slow start that the law has ended is the law's again.
  const others = draft.cause === 'breaker' && draft.reason !== law.reason;
  const keeps = !others && sample.inForce.held === 'none';
  memory.law = keeps ? law.memory : withoutPending(law.memory);
  return draft;
}

/** What becomes of the law's wish: it is followed, or the breaker sheds or comes back. */
function drafted(
  policy: Policy,
  breaker: Memory['breaker'],
  sample: Sample,
  law: LawResult,
  { verdict, next }: { verdict: Verdict; next: LimiterState },
): Draft {
  if (verdict.event === 'shed') return shedDraft(policy, breaker, sample, verdict);
  if (next !== 'recovering') return lawDraft(sample, law);
  const shed = unprovenPart(policy, sample);
  if (shed !== null) return shedDraft(policy, breaker, sample, shed);
  return ramp(policy, breaker, sample, law);
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
    over: law.over,
    terms: law.terms,
  };
}

function finish(policy: Policy, sample: Sample, draft: Draft): Proposal {
  const bounds = boundsOf(policy);
  const finite = Number.isFinite(draft.rate) ? draft.rate : sample.inForce.target.rate;
  const rate = clamp(finite, 0, Math.max(bounds.rate.max, sample.inForce.target.rate));
  const { target } = sample.inForce;
  const { state, inFlightMax, cause, reason, why, over, terms, openForMs } = draft;
  const capacity = rate === target.rate ? target.capacity : capacityFor(policy, rate);
  const proposal = { state, rate, capacity, inFlightMax, cause, reason, why, over, terms };
  return openForMs === undefined ? proposal : { ...proposal, openForMs };
}
