/** Guard `autoRollback`: when goodput falls after the limits rose, back to the last that proved good, and no higher for a while. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import { num } from '../decide/reasons.js';
import type { Decision, ProofMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type Guard, passed } from './types.js';

/**
 * Goodput is judged a window at a time: at least 5 s and 50 answers, all of them fresh.
 *
 *   limits not above what proved good     that follows them, and the goodput that they give: nothing to blame
 *   limits fell                           what is answered from before them is waited for; it proves nothing
 *   as good (97 %)                        what was in force in the window has proved good
 *   worse by more than 10 %, and than     bad; twice in a row: back to what proved good, if the limits rose within
 *     four times the noise of counting      a minute, or a policy was adopted within five
 *   too little is asked for to be as good, or slower routes, or other processes report: no evidence
 *   something is asked for, and nothing at all answered: a pause, of which, as of the time that it takes to make up for
 *     it, nothing is said. What a raise did to a service is seen in what it answers
 *
 * Afterwards raises end at what proved good for a minute, then 2, 4, … at most an hour if it happens again: it never
 * flaps. It only lowers, never while a person holds, and never beyond the bounds.
 */
export const PROOF = {
  windowMs: 5_000,
  windowAnswers: 50,
  /** A window that lasts longer than this, or has a gap of so much, proves nothing. */
  windowMostMs: 30_000,
  asGood: 0.97,
  worse: 0.1,
  noise: 4,
  /** So many bad windows in a row: a pause of the service makes one. */
  badWindows: 2,
  /** What is reached for must be this share of the former goodput at least, or it is the demand that fell. */
  demand: 0.98,
  /** What is asked for beyond this many times the most that was answered at a time, while good, makes up for nothing. */
  burst: 1.5,
  /** So many answers must have been due for none to be a pause. */
  pauseAnswers: 5,
  /** Slower routes than usual are asked for, by this factor. */
  mix: 1.25,
  blameMs: 60_000,
  adoptedMs: 300_000,
  coolMs: 60_000,
  levels: 6,
  /** A level is forgotten after this long without a rollback. */
  calmMs: 900_000,
};

const LONG_MS = 3_600_000;
const NO_WINDOW = { ok: 0, asked: 0, count: 0, ms: 0, peak: 0 };

/** What is known before the guards judge; undefined where there is nothing to watch over. */
export function observeProof(
  policy: Policy,
  before: ProofMemory | undefined,
  sample: Sample,
): ProofMemory | undefined {
  const { inForce, dtMs } = sample;
  const off = policy.guards.autoRollback === false || policy.control.law === 'fixed';
  if (off || inForce.mode !== 'auto') return undefined;
  const proof = timed(before ?? unproven(sample), sample, Math.max(0, dtMs));
  const rests = inForce.state !== 'closed' || inForce.held !== 'none' || inForce.gliding;
  return rests ? { ...proof, ...nothingKnown(sample) } : watched(proof, sample);
}

/** What the decision makes of it. */
export function settleProof(proof: ProofMemory, decision: Decision): ProofMemory {
  if (!decision.change || decision.reason !== 'auto_rollback') return proof;
  return {
    ...proof,
    ...NO_WINDOW,
    ...{ bad: 0, calmMs: 0 },
    topRate: decision.rate,
    topCap: decision.inFlightMax,
    coolMs: Math.min(LONG_MS, PROOF.coolMs * 2 ** proof.level),
    level: Math.min(PROOF.levels, proof.level + 1),
  };
}

export const autoRollback: Guard = (input) => {
  const { policy, proof, proposal, now } = input;
  if (proof === undefined || proposal.state !== 'closed') return passed('autoRollback', proposal);
  const limits = boundsOf(policy);
  if (proof.bad >= PROOF.badWindows && input.sample.traffic.fresh) {
    const rate = Math.min(proposal.rate, Math.max(proof.rate, limits.rate.min));
    const least = Math.max(proof.cap, limits.inFlight?.min ?? 0);
    const cap = Math.min(proposal.inFlightMax, least);
    const lowers = rate < proposal.rate || cap < proposal.inFlightMax;
    if (lowers && (rate < now.rate || cap < now.inFlightMax)) {
      const why = `${fallText(proof, input.sample)}; back to the last good values`;
      const next = { ...proposal, rate, inFlightMax: cap, reason: 'auto_rollback', why };
      return {
        proposal: next,
        verdict: { guard: 'autoRollback', effect: 'lowered', sentence: why },
      };
    }
  }
  if (proof.coolMs === 0) return passed('autoRollback', proposal);
  const rate = Math.min(proposal.rate, Math.max(now.rate, proof.topRate));
  const cap = Math.min(proposal.inFlightMax, Math.max(now.inFlightMax, proof.topCap));
  if (rate === proposal.rate && cap === proposal.inFlightMax) {
    return passed('autoRollback', proposal);
  }
  const sentence = `rolled back after a raise: none beyond it for ${num(proof.coolMs / 1000)} s`;
  return {
    proposal: { ...proposal, rate, inFlightMax: cap },
    verdict: { guard: 'autoRollback', effect: 'held', sentence },
  };
};

function fallText(proof: ProofMemory, { traffic }: Sample): string {
  const adopted = proof.adoptedMs < PROOF.adoptedMs;
  const since = adopted
    ? `a policy was adopted ${num(proof.adoptedMs / 1000)} s ago`
    : `the limits rose ${num(proof.sinceRiseMs / 1000)} s ago`;
  const asked = traffic.admittedRate + traffic.deniedByRate + traffic.deniedByCap;
  return `${num(proof.good)} → ${num(proof.worse)} good answers/s since ${since}, at ${num(asked)}/s asked for`;
}

/** Time goes on, and a rise shows, whoever made it. Somebody else's, beyond where raises end, ends that. */
function timed(proof: ProofMemory, sample: Sample, dtMs: number): ProofMemory {
  const { rate, inFlightMax } = sample.inForce.target;
  const rose = rate > proof.lastRate || inFlightMax > proof.lastCap;
  const fell = rate < proof.lastRate || inFlightMax < proof.lastCap;
  const above = rate > proof.rate || inFlightMax > proof.cap;
  const beyond = rate > proof.topRate || inFlightMax > proof.topCap;
  const coolMs = beyond ? 0 : Math.max(0, proof.coolMs - dtMs);
  const calmMs = proof.level === 0 ? 0 : proof.calmMs + dtMs;
  const forgets = calmMs >= PROOF.calmMs;
  return {
    ...(fell && !above ? { ...proof, ...nothingKnown(sample) } : proof),
    settleMs: fell ? drainMs(sample) : Math.max(0, proof.settleMs - dtMs),
    sinceRiseMs: rose ? 0 : Math.min(LONG_MS, proof.sinceRiseMs + dtMs),
    adoptedMs: sample.adopted === true ? 0 : Math.min(LONG_MS, proof.adoptedMs + dtMs),
    lastRate: rate,
    lastCap: inFlightMax,
    coolMs,
    level: forgets ? proof.level - 1 : proof.level,
    calmMs: forgets ? 0 : calmMs,
  };
}

function watched(proof: ProofMemory, sample: Sample): ProofMemory {
  const { traffic } = sample;
  if (!traffic.fresh) {
    return traffic.ageMs < PROOF.windowMostMs ? proof : { ...proof, ...nothingKnown(sample) };
  }
  const { rate, inFlightMax } = sample.inForce.target;
  // Of a sample that stands for long only its rates are known: it counts for a few seconds.
  const ms = Math.min(Math.max(0, traffic.intervalMs), PROOF.windowMs);
  const asked = traffic.admittedRate + traffic.deniedByRate + traffic.deniedByCap;
  // Where nobody asked, none was due.
  const due = (Math.min(proof.good, asked) * ms) / 1000;
  if (traffic.answers === 0 && due >= PROOF.pauseAnswers) {
    return { ...proof, ...NO_WINDOW, bad: 0, settleMs: drainMs(sample, proof.settleMs + 2 * ms) };
  }
  if (proof.settleMs > 0) return { ...proof, ...NO_WINDOW };
  const most = proof.good > 0 ? PROOF.burst * Math.max(proof.good, proof.goodPeak ?? 0) : asked;
  const begins = proof.ms === 0;
  const next = {
    ...proof,
    atRate: begins ? rate : Math.min(proof.atRate, rate),
    atCap: begins ? inFlightMax : Math.min(proof.atCap, inFlightMax),
    ok: proof.ok + (traffic.okRate * ms) / 1000,
    asked: proof.asked + (Math.min(asked, most) * ms) / 1000,
    count: proof.count + traffic.answers,
    ms: proof.ms + ms,
    peak: Math.max(proof.peak ?? 0, traffic.okRate),
  };
  if (next.ms >= PROOF.windowMs && next.count >= PROOF.windowAnswers) return judged(next, sample);
  return next.ms < PROOF.windowMostMs ? next : { ...next, ...nothingKnown(sample) };
}

/** A window is over. */
function judged(proof: ProofMemory, sample: Sample): ProofMemory {
  const { traffic, inForce } = sample;
  const { rate, inFlightMax } = inForce.target;
  const seen = (1000 * proof.ok) / proof.ms;
  const asked = (1000 * proof.asked) / proof.ms;
  const { count, atRate, atCap, peak = 0 } = proof;
  // What a full bucket held is answered beside the rate, once: no later window could be as good.
  const lasting = Math.min(seen, atRate);
  const next = { ...proof, ...NO_WINDOW, bad: 0 };
  const { reporting } = traffic;
  const now = { rate: atRate, cap: atCap, reporting, answers: count, goodPeak: peak };
  const above = rate > proof.rate || inFlightMax > proof.cap;
  const blamed = proof.sinceRiseMs <= PROOF.blameMs || proof.adoptedMs <= PROOF.adoptedMs;
  const known = proof.good > 0 && proof.reporting === reporting;
  if (!(above && blamed && known)) return { ...next, ...now, good: lasting };
  const explained =
    asked < PROOF.demand * proof.good ||
    (traffic.mix !== undefined && traffic.mix.shift > PROOF.mix);
  if (explained) return { ...next, good: Math.min(proof.good, seen) };
  if (seen >= PROOF.asGood * proof.good) {
    return { ...next, ...now, good: Math.max(proof.good, lasting) };
  }
  const noise = PROOF.noise * Math.sqrt(1 / Math.max(1, proof.answers) + 1 / Math.max(1, count));
  const bad = seen < proof.good * (1 - Math.max(PROOF.worse, noise)) ? proof.bad + 1 : 0;
  return { ...next, bad, worse: seen };
}

/** Until then what is answered was admitted under the limits before, or in a pause; at least so long. */
function drainMs({ traffic }: Sample, leastMs = 0): number {
  const drained = traffic.ageMs + traffic.intervalMs + 2 * (traffic.meanMs ?? 1_000);
  return Math.min(30_000, Math.max(leastMs, drained));
}

function unproven(sample: Sample): ProofMemory {
  const { rate, inFlightMax } = sample.inForce.target;
  return {
    ...nothingKnown(sample),
    ...{ worse: 0, settleMs: 0, sinceRiseMs: LONG_MS, adoptedMs: LONG_MS },
    ...{ lastRate: rate, lastCap: inFlightMax },
    ...{ topRate: 0, topCap: 0, coolMs: 0, level: 0, calmMs: 0 },
  };
}

/** What is in force may be good or not. */
function nothingKnown({ inForce, traffic }: Sample) {
  const { rate, inFlightMax } = inForce.target;
  return {
    ...{ rate, cap: inFlightMax, good: 0, answers: 0, reporting: traffic.reporting },
    ...{ atRate: rate, atCap: inFlightMax, ...NO_WINDOW, bad: 0 },
  };
}
