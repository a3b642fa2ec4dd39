/** What one limiter's breaker takes from the others that share its upstream: they open and come back together. Stage: decide. */
import type { BreakerMemory, UpstreamWord } from './breaker-types.js';
import type { Decision, Sample } from './types.js';

/**
 * Each trip on a limiter's own evidence begins a round, numbered by Redis's time; who follows is of the same round.
 * Only a round that is newer than one's own opens, so that no old word opens twice; only the verdict of one's own round
 * passes.
 */
export interface News {
  event: 'opened' | 'passed';
  round: number;
  /** ms until its open time is over. */
  leftMs: number;
  why: string;
}

export function upstreamNews(memory: BreakerMemory, { upstream }: Sample): News | null {
  if (upstream === undefined) return null;
  const { name, by, state, round, leftMs } = upstream;
  const own = memory.round ?? 0;
  if (state === 'open' && round > own && leftMs > 0) {
    return { event: 'opened', round, leftMs, why: `upstream ${name}: ${by} opened its breaker` };
  }
  // A trip that a person made is of no round: its own probes decide.
  if (state === 'passed' && round === own && memory.joined === 1) {
    return {
      event: 'passed',
      round,
      leftMs: 0,
      why: `upstream ${name}: the probes of ${by} passed`,
    };
  }
  return null;
}

/** Round and part in it as this tick finds them. */
export function followRound(
  before: BreakerMemory,
  { inForce, upstream }: Sample,
): Pick<BreakerMemory, 'round' | 'joined'> {
  const { round, joined } = before;
  if (round === undefined) return {};
  const stopped = inForce.state === 'open' || inForce.state === 'half-open';
  if (!stopped) return { round, joined: 0 };
  // Two that tripped at once are of the later round, both.
  const later = inForce.state === 'open' && upstream?.state === 'open' && joined === 1;
  return { round: later ? Math.max(round, upstream.round) : round, joined: joined ?? 0 };
}

/** The round that a trip begins, or follows. */
export function roundOf(memory: BreakerMemory, sample: Sample, news: News | null): number {
  return news?.round ?? Math.max(Math.floor(sample.nowMs), (memory.round ?? 0) + 1);
}

/** What a limiter tells the others of its breaker. */
export interface ToldBreaker {
  state: UpstreamWord['state'];
  /** Redis ms of the trip that it speaks of; 0: none that was its own or followed. */
  round: number;
  /** Redis ms until which it is open. */
  untilMs: number;
}

/** What tells more, last. */
export const TOLD_STATES: readonly UpstreamWord['state'][] = ['probing', 'passed', 'open'];

/** How a breaker stands once `decision` is in force. A trip that a person made is theirs alone: nobody follows it. */
export function toldOf(
  breaker: BreakerMemory,
  decision: Pick<Decision, 'state' | 'change' | 'openForMs'>,
  openUntilMs: number,
  nowMs: number,
): ToldBreaker {
  const { round = 0, joined = 0 } = breaker;
  const { state, change, openForMs } = decision;
  if (state === 'open' && joined === 1) {
    const untilMs = change && openForMs !== undefined ? nowMs + openForMs : openUntilMs;
    return { state: 'open', round, untilMs: Math.max(0, Math.floor(untilMs)) };
  }
  const stopped = state === 'open' || state === 'half-open';
  return { state: stopped ? 'probing' : 'passed', round, untilMs: 0 };
}

/** A clock that was set back would make it longer than any breaker stays open by itself. */
const LONGEST_MS = 86_400_000;

/** Of the newest round an open breaker tells most, then one whose probes have passed. */
export function newestWord(
  name: string,
  others: ReadonlyMap<string, ToldBreaker>,
  nowMs: number,
): UpstreamWord | undefined {
  const rank = ({ state }: ToldBreaker) => TOLD_STATES.indexOf(state);
  let newest: { by: string; told: ToldBreaker } | undefined;
  for (const [by, told] of others) {
    // Of no trip that was: it would lie above all that are to come, and nobody would be followed any more.
    if (told.round > nowMs + LONGEST_MS) continue;
    const before = newest?.told;
    const newer =
      before === undefined ||
      told.round > before.round ||
      (told.round === before.round && rank(told) > rank(before));
    if (told.round > 0 && newer) newest = { by, told };
  }
  if (newest === undefined) return undefined;
  const { state, round, untilMs } = newest.told;
  const leftMs = state === 'open' ? Math.max(0, Math.ceil(untilMs - nowMs)) : 0;
  return { name, by: newest.by, round, state, leftMs: Math.min(leftMs, LONGEST_MS) };
}
