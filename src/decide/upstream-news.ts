/** What one limiter's breaker takes from the others that share its upstream: they open and come back together. Stage: decide. */
import type { BreakerMemory, Sample } from './types.js';

/**
 * Each trip on a limiter's own evidence begins a round, numbered by Redis's time; those who follow are of the same round. Only a
 * round that is newer than one's own opens, so that no old word opens twice; only the verdict of one's own round passes.
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
