/** How a canary is judged: what its part of the subjects saw against what the others saw meanwhile. Pure. Stage: decide. */
import { provenShare } from './trips.js';

/** What a group of subjects has seen since the canary began. */
export interface GroupSeen {
  offered: number;
  denied: number;
  /** Good and failed. */
  answers: number;
  failed: number;
  /** By the objective's own statistic, else the p95; null: nothing was answered. */
  responseMs: number | null;
  /** Answers that took longer than the objective allows; 0 without one. */
  slow: number;
}

export interface CanarySeen {
  /** Since it began. */
  elapsedMs: number;
  forMs: number;
  /** Without evidence it waits so long. */
  mostMs: number;
  /** Its breaker has opened. */
  tripped: boolean;
  /** Why the limiter itself decides for all just now; null or absent: the canary decides for its part. */
  rests?: string | null;
  /** How much of the time it rested: what both have seen meanwhile does not count. */
  restedMs?: number;
  canary: GroupSeen;
  others: GroupSeen;
  /** The response time that the policy wants; null: none. `of`: a quantile, or the mean. */
  objective: { of: 'mean' | number; belowMs: number } | null;
}

export type CanaryVerdict = {
  verdict: 'waits' | 'passed' | 'failed' | 'unproven';
  /** In words, with numbers of both groups. */
  why: string;
};

/** Answers of a group below which a verdict is mostly luck. */
export const ENOUGH_ANSWERS = 50;
/** Fewer failures are an accident, however little it takes to prove them more than none. */
const FEWEST_FAILURES = 5;
/** Slower than the others by this factor counts, if the objective is missed too. */
const SLOWER = 1.2;

export function judgeCanary(seen: CanarySeen): CanaryVerdict {
  const { elapsedMs, forMs, mostMs, tripped, rests = null, restedMs = 0, canary, others } = seen;
  const told = `${groupWords('canary', canary, seen)}; ${groupWords('others', others, seen)}`;
  const say = (verdict: CanaryVerdict['verdict'], why: string) => ({
    verdict,
    why: `${why}: ${told}`,
  });
  if (tripped) return say('failed', 'its breaker opened');
  if (failsMore(canary, others)) return say('failed', 'more of its answers failed, proven');
  if (isSlower(seen) && provenSlow(seen)) return say('failed', 'it is slower, proven');
  const late = elapsedMs < mostMs ? 'waits' : 'unproven';
  if (rests !== null) return say(late, rests);
  if (elapsedMs < forMs) return say('waits', 'the time is not over');
  if (elapsedMs - restedMs < forMs) return say(late, 'it rested for a part of its time');
  if (Math.min(canary.answers, others.answers) < ENOUGH_ANSWERS) {
    const why = `fewer than ${ENOUGH_ANSWERS} answers of a group`;
    return say(late, why);
  }
  if (isSlower(seen)) return say('failed', 'it is slower');
  return say('passed', 'no worse than the others');
}

/** The least that its failures prove lies above the most that the others' allow. */
function failsMore(canary: GroupSeen, others: GroupSeen): boolean {
  if (canary.failed < FEWEST_FAILURES) return false;
  const { answers, failed } = others;
  const most = answers > 0 ? 1 - provenShare(answers - failed, answers) : 1;
  return provenShare(canary.failed, canary.answers) > most;
}

function isSlower({ canary, others, objective }: CanarySeen): boolean {
  if (objective === null || canary.responseMs === null || others.responseMs === null) return false;
  return canary.responseMs > objective.belowMs && canary.responseMs > others.responseMs * SLOWER;
}

/** Early only by proof: so few may be slow of a quantile's answers. Of a mean there is none. */
function provenSlow({ canary, others, objective }: CanarySeen): boolean {
  if (objective === null || objective.of === 'mean') return false;
  if (others.answers < ENOUGH_ANSWERS) return false;
  return provenShare(canary.slow, canary.answers) > 1 - objective.of;
}

function groupWords(name: string, group: GroupSeen, { objective }: CanarySeen): string {
  const { offered, denied, answers, failed, responseMs } = group;
  const of = objective === null ? 0.95 : objective.of;
  const what = of === 'mean' ? 'mean' : `p${Number((of * 100).toPrecision(4))}`;
  const response = responseMs === null ? '' : `, ${what} ${Number(responseMs.toPrecision(3))} ms`;
  return `${name} ${answers} answers, ${share(failed, answers)} failed${response}, ${share(denied, offered)} denied`;
}

function share(part: number, of: number): string {
  return of > 0 ? `${Number(((part / of) * 100).toPrecision(3))} %` : '0 %';
}
