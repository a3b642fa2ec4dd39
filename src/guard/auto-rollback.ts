/** Guard `autoRollback`: when goodput falls after the limits rose, back to the last that proved good, and no higher for a while. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import { num } from '../decide/reasons.js';
import type { Decision, ProofMemory, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import type { Guard } from './types.js';

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

/** What is known before the guards judge; undefined where there is nothing to watch over. */
export function observeProof(
  policy: Policy,
  before: ProofMemory | undefined,
  sample: Sample,
): ProofMemory | undefined {
  const { inForce, dtMs } = sample;
  const off = policy.guards.autoRollback === false || policy.control.law === 'fixed';
  if (off || inForce.mode !== 'auto') return undefined;
  // The tick's own from here on.
  const proof = before === undefined ? unproven(sample) : { ...before };
  goOn(proof, sample, Math.max(0, dtMs));
  const rests = inForce.state !== 'closed' || inForce.held !== 'none' || inForce.gliding;
  if (rests) forget(proof, sample);
  else watch(proof, sample);
  return proof;
}

/** What the decision makes of it. Fills in what it is given. */
export function settleProof(proof: ProofMemory, decision: Decision): void {
  if (!decision.change || decision.reason !== 'auto_rollback') return;
  noWindow(proof);
  proof.bad = 0;
  proof.calmMs = 0;
  proof.topRate = decision.rate;
  proof.topCap = decision.inFlightMax;
  proof.coolMs = Math.min(LONG_MS, PROOF.coolMs * 2 ** proof.level);
  proof.level = Math.min(PROOF.levels, proof.level + 1);
}

export const autoRollback: Guard = (input) => {
  const { policy, proof, proposal, now } = input;
  if (proof === undefined || proposal.state !== 'closed') return null;
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
  if (proof.coolMs === 0) return null;
  const rate = Math.min(proposal.rate, Math.max(now.rate, proof.topRate));
  const cap = Math.min(proposal.inFlightMax, Math.max(now.inFlightMax, proof.topCap));
  if (rate === proposal.rate && cap === proposal.inFlightMax) {
    return null;
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
function goOn(proof: ProofMemory, sample: Sample, dtMs: number): void {
  const { rate, inFlightMax } = sample.inForce.target;
  const rose = rate > proof.lastRate || inFlightMax > proof.lastCap;
  const fell = rate < proof.lastRate || inFlightMax < proof.lastCap;
  const above = rate > proof.rate || inFlightMax > proof.cap;
  const beyond = rate > proof.topRate || inFlightMax > proof.topCap;
  if (fell && !above) forget(proof, sample);
  proof.settleMs = fell ? drainMs(sample) : Math.max(0, proof.settleMs - dtMs);
  proof.sinceRiseMs = rose ? 0 : Math.min(LONG_MS, proof.sinceRiseMs + dtMs);
  proof.adoptedMs = sample.adopted === true ? 0 : Math.min(LONG_MS, proof.adoptedMs + dtMs);
  proof.lastRate = rate;
  proof.lastCap = inFlightMax;
  proof.coolMs = beyond ? 0 : Math.max(0, proof.coolMs - dtMs);
  proof.calmMs = proof.level === 0 ? 0 : proof.calmMs + dtMs;
  if (proof.calmMs >= PROOF.calmMs) {
    proof.level -= 1;
    proof.calmMs = 0;
  }
}

function watch(proof: ProofMemory, sample: Sample): void {
  const { traffic } = sample;
  if (!traffic.fresh) {
    if (!(traffic.ageMs < PROOF.windowMostMs)) forget(proof, sample);
    return;
  }
  const { rate, inFlightMax } = sample.inForce.target;
  // Of a sample that stands for long only its rates are known: it counts for a few seconds.
  const ms = Math.min(Math.max(0, traffic.intervalMs), PROOF.windowMs);
  const asked = traffic.admittedRate + traffic.deniedByRate + traffic.deniedByCap;
  // Where nobody asked, none was due.
  const due = (Math.min(proof.good, asked) * ms) / 1000;
  if (traffic.answers === 0 && due >= PROOF.pauseAnswers) {
    noWindow(proof);
    proof.bad = 0;
    proof.settleMs = drainMs(sample, proof.settleMs + 2 * ms);
    return;
  }
  if (proof.settleMs > 0) {
    noWindow(proof);
    return;
  }
  const most = proof.good > 0 ? PROOF.burst * Math.max(proof.good, proof.goodPeak ?? 0) : asked;
  const begins = proof.ms === 0;
  proof.atRate = begins ? rate : Math.min(proof.atRate, rate);
  proof.atCap = begins ? inFlightMax : Math.min(proof.atCap, inFlightMax);
  proof.ok += (traffic.okRate * ms) / 1000;
  proof.asked += (Math.min(asked, most) * ms) / 1000;
  proof.count += traffic.answers;
  proof.ms += ms;
  proof.peak = Math.max(proof.peak ?? 0, traffic.okRate);
  if (proof.ms >= PROOF.windowMs && proof.count >= PROOF.windowAnswers) judge(proof, sample);
  else if (!(proof.ms < PROOF.windowMostMs)) forget(proof, sample);
}

/** A window is over. */
function judge(proof: ProofMemory, sample: Sample): void {
  const { mix, reporting } = sample.traffic;
  const { rate, inFlightMax } = sample.inForce.target;
  const { count, atRate, good } = proof;
  const seen = (1000 * proof.ok) / proof.ms;
  const asked = (1000 * proof.asked) / proof.ms;
  // What a full bucket held is answered beside the rate, once: no later window could be as good.
  const lasting = Math.min(seen, atRate);
  const above = rate > proof.rate || inFlightMax > proof.cap;
  const blamed = proof.sinceRiseMs <= PROOF.blameMs || proof.adoptedMs <= PROOF.adoptedMs;
  const known = good > 0 && proof.reporting === reporting;
  const explained = asked < PROOF.demand * good || (mix !== undefined && mix.shift > PROOF.mix);
  const noise = PROOF.noise * Math.sqrt(1 / Math.max(1, proof.answers) + 1 / Math.max(1, count));
  let bad = 0;
  if (!(above && blamed && known)) proved(proof, sample, lasting);
  else if (explained) proof.good = Math.min(good, seen);
  else if (seen >= PROOF.asGood * good) proved(proof, sample, Math.max(good, lasting));
  else {
    if (seen < good * (1 - Math.max(PROOF.worse, noise))) bad = proof.bad + 1;
    proof.worse = seen;
  }
  proof.bad = bad;
  noWindow(proof);
}

/** What was in force in the window is good from now on. */
function proved(proof: ProofMemory, { traffic }: Sample, good: number): void {
  proof.rate = proof.atRate;
  proof.cap = proof.atCap;
  proof.good = good;
  proof.answers = proof.count;
  proof.reporting = traffic.reporting;
  proof.goodPeak = proof.peak ?? 0;
}

/** Until then what is answered was admitted under the limits before, or in a pause; at least so long. */
function drainMs({ traffic }: Sample, leastMs = 0): number {
  const drained = traffic.ageMs + traffic.intervalMs + 2 * (traffic.meanMs ?? 1_000);
  return Math.min(30_000, Math.max(leastMs, drained));
}

function unproven(sample: Sample): ProofMemory {
  const { rate, inFlightMax } = sample.inForce.target;
  return {
    ...{ rate, cap: inFlightMax, good: 0, answers: 0, reporting: sample.traffic.reporting },
    ...{ atRate: rate, atCap: inFlightMax, ok: 0, asked: 0, count: 0, ms: 0, peak: 0, goodPeak: 0 },
    ...{ bad: 0, worse: 0, settleMs: 0, sinceRiseMs: LONG_MS, adoptedMs: LONG_MS },
    ...{ lastRate: rate, lastCap: inFlightMax },
    ...{ topRate: 0, topCap: 0, coolMs: 0, level: 0, calmMs: 0 },
  };
}

/** What is in force may be good or not. */
function forget(proof: ProofMemory, { inForce, traffic }: Sample): void {
  const { rate, inFlightMax } = inForce.target;
  proof.rate = rate;
  proof.cap = inFlightMax;
  proof.good = 0;
  proof.answers = 0;
  proof.reporting = traffic.reporting;
  proof.atRate = rate;
  proof.atCap = inFlightMax;
  proof.bad = 0;
  noWindow(proof);
}

function noWindow(proof: ProofMemory): void {
  proof.ok = 0;
  proof.asked = 0;
  proof.count = 0;
  proof.ms = 0;
  proof.peak = 0;
}
