/** Which breaker event a sample raises, and what the breaker remembers of it. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import type { LimiterState } from '../redis/params.js';
import type { BreakerEvent } from './breaker.js';
import type { BreakerMemory, LimiterNumbers } from './breaker-types.js';
import { num } from './reasons.js';
import { isShed, shedPart } from './shed.js';
import { freshBreaker } from './state.js';
import { passedLevels, stillAbove, timeAbove } from './tripping.js';
import type { Sample } from './types.js';
import { followRound, type News, roundOf, upstreamNews } from './upstream-news.js';

/** Used when a person tripped a limiter whose policy has no breaker. */
const DEFAULTS = { successes: 3, probeDeadline: 30_000, openFor: 5_000, openForMax: 60_000 };

/** What happened, in words where it moves something; `part` of a shed is what is taken away, 0 … 1. */
export interface Verdict {
  event: BreakerEvent;
  why: string;
  part: number;
  /** It is the word of another limiter of the upstream. */
  news: News | null;
}

/** Time in state, probes, decay of the trips in a row. The state itself is what is in force. */
export function observe(policy: Policy, before: BreakerMemory, sample: Sample): BreakerMemory {
  const { inForce, outcomes, traffic } = sample;
  const dtMs = Math.max(0, sample.dtMs);
  const entered = before.state !== inForce.state;
  const memory = withLevels(before, timeAbove(policy, before.aboveMs, sample));
  if (before.round !== undefined) Object.assign(memory, followRound(before, sample));
  if (entered) {
    memory.state = inForce.state;
    memory.inStateMs = 0;
    memory.probesOk = 0;
    memory.probesFailed = 0;
    memory.probingMs = -1;
  } else memory.inStateMs += dtMs;

  if (inForce.state === 'closed') {
    if (entered && before.state !== 'closed') memory.resume = null;
    const decayMs = policy.breaker?.openForMax ?? DEFAULTS.openForMax;
    memory.level = Math.max(0, memory.level - dtMs / decayMs);
  }
  if (isStopped(inForce.state)) {
    const target = { rate: inForce.target.rate, inFlightMax: inForce.target.inFlightMax };
    // The way back leads to what is stored, or, after a trip out of a slow start, to where that led; what a
    // person stores while it is open replaces both.
    const changed = isStopped(before.state) && before.stored && !same(before.stored, target);
    if (memory.resume === null || changed) memory.resume = target;
    memory.stored = target;
  }
  if (inForce.state === 'half-open') {
    const current = outcomes.generation === inForce.generation;
    if (outcomes.fresh && current) {
      memory.probesOk += outcomes.tick.ok;
      memory.probesFailed += outcomes.tick.matching;
    }
    // The deadline runs from the first probe and only while telemetry comes in: silence of the sensor
    // or of the callers is no verdict.
    if (traffic.fresh) {
      if (memory.probingMs >= 0) memory.probingMs += dtMs;
      else if (!entered && traffic.admittedRate > 0) memory.probingMs = 0;
    }
  }
  return memory;
}

/** A copy, with the times of the levels that the policy has now. */
function withLevels(before: BreakerMemory, aboveMs: number[] | undefined): BreakerMemory {
  if (aboveMs !== undefined) return { ...before, aboveMs };
  if (before.aboveMs === undefined) return { ...before };
  const { aboveMs: _gone, ...rest } = before;
  return rest;
}

function isStopped(state: LimiterState): boolean {
  return state === 'open' || state === 'half-open';
}

function same(a: LimiterNumbers, b: LimiterNumbers): boolean {
  return a.rate === b.rate && a.inFlightMax === b.inFlightMax;
}

const NOTHING: Verdict = { event: 'none', why: '', part: 0, news: null };

/** The event of this tick. Only what is fresh and of the generation in force can trip. */
export function breakerVerdict(policy: Policy, memory: BreakerMemory, sample: Sample): Verdict {
  const { inForce } = sample;
  // `effective()` turns it half-open by time.
  if (inForce.holdBreaker || inForce.state === 'open') return NOTHING;
  const news = upstreamNews(memory, sample);
  if (inForce.state === 'half-open') {
    if (news === null) return probeVerdict(policy, memory, sample);
    const event = news.event === 'opened' ? 'probe_failed' : 'probes_passed';
    return { event, why: news.why, part: 0, news };
  }
  const passed = passedLevels(policy, memory, sample);
  const stopping = passed.find(({ trip }) => !isShed(policy, trip));
  if (stopping !== undefined) return { ...NOTHING, event: 'trip', why: stopping.why };
  if (news?.event === 'opened') return { event: 'trip', why: news.why, part: 0, news };
  const shed = shedPart(policy, sample, passed);
  return shed === null ? NOTHING : { ...NOTHING, event: 'shed', ...shed };
}

function probeVerdict(policy: Policy, memory: BreakerMemory, sample: Sample): Verdict {
  const { successes, probeDeadline } = policy.breaker ?? DEFAULTS;
  const { probesOk, probesFailed, probingMs } = memory;
  // What was counted before a hold or a lost write is judged by the next answer, not by silence.
  if (!sample.outcomes.fresh) return NOTHING;
  const says = (event: BreakerEvent, why: string): Verdict => ({ ...NOTHING, event, why });
  // A failure opens unless it is the odd one among successes: then another probe decides.
  if (probesFailed > 0 && probesFailed >= probesOk) {
    const all = num(probesFailed + probesOk);
    return says('probe_failed', `${num(probesFailed)} of ${all} probes failed`);
  }
  if (probesOk >= successes) {
    const passed = `${num(probesOk)} probes passed`;
    const still = stillAbove(policy, sample);
    if (still !== null) return says('probe_failed', `${passed}, but ${still}`);
    return says('probes_passed', passed);
  }
  return probingMs >= probeDeadline
    ? says('probe_deadline', `no verdict of the probes in ${num(probingMs / 1000)} s`)
    : NOTHING;
}

/** Doubles with each trip in a row, up to the most; who follows another stays open as long as that one. */
export function openForMs(policy: Policy, memory: BreakerMemory, news: News | null): number {
  if (news !== null) return Math.max(100, Math.ceil(news.leftMs));
  const { openFor, openForMax } = policy.breaker ?? DEFAULTS;
  return Math.min(openForMax, openFor * 2 ** Math.min(20, Math.ceil(memory.level - 1e-9)));
}

/** Memory once a trip (or a failed probe) has been decided. */
export function afterTrip(
  policy: Policy,
  memory: BreakerMemory,
  sample: Sample,
  news: News | null,
): BreakerMemory {
  const { target, state } = sample.inForce;
  const known = memory.resume !== null && state !== 'closed';
  const resume = known ? memory.resume : { rate: target.rate, inFlightMax: target.inFlightMax };
  const shared =
    policy.breaker?.upstream === undefined
      ? {}
      : { round: roundOf(memory, sample, news), joined: 1 };
  const { inStateMs, level } = memory;
  return { ...freshBreaker(), state, inStateMs, level: level + 1, resume, ...shared };
}
