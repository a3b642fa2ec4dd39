/** What `status` says of the loop's own behaviour, and what of the law follows it. Pure. Stage: cli, api. */
import type { LimiterStatus } from '../report/status.js';
import { GOOD } from '../tune/loop-fit.js';
import { number } from './text.js';

export interface LoopView {
  /** ms until a change of the limit shows in the signal; null: not known. */
  deadMs: number | null;
  /** d ln signal ÷ d ln limit, and R² of it. */
  gain: number | null;
  fit: number | null;
  /** Changes of the limit behind it, the older counting less. */
  changes: number;
  /** 0: defaults; 1: what follows from it in full. */
  trust: number;
  /** Factors on the law's own constants; null: defaults. */
  follows: { cut: number; raise: number; headroom: number } | null;
  /** All that in a sentence. */
  text: string;
}

/** null: the law is not one that is tuned by its loop, or nobody decides. */
export function loopView(status: Partial<LimiterStatus> | null): LoopView | null {
  if (!String(status?.law ?? '').startsWith('adaptive@')) return null;
  const terms = (status?.decision?.terms ?? {}) as Record<string, unknown>;
  const of = (name: string) => {
    const value = terms[`loop${name}`];
    return typeof value === 'number' && Number.isFinite(value) ? value : null;
  };
  const trust = of('Trust') ?? 0;
  const known = (value: number | null) => (value !== null && value > 0 ? value : null);
  const view = {
    deadMs: known(of('DeadMs')),
    gain: known(of('Gain')),
    fit: known(of('Fit')),
    changes: of('Changes') ?? 0,
    trust,
    follows:
      trust > 0
        ? { cut: of('Cut') ?? 1, raise: of('Raise') ?? 1, headroom: of('Headroom') ?? 1 }
        : null,
  };
  return { ...view, text: of('Trust') === null ? UNSEEN : textOf(view) };
}

const UNSEEN = 'defaults: learnt in mode auto with the breaker closed, and only there';

function textOf(view: Omit<LoopView, 'text'>): string {
  const { deadMs, gain, fit, changes, trust, follows } = view;
  const seen = `${number(Math.round(changes))} changes`;
  if (changes < GOOD.changes[0]) {
    return `defaults: too few changes under load (${number(Math.round(changes))} of late, ${GOOD.changes[0]} begin to tell)`;
  }
  const r2 = `R² ${two(fit ?? 0)} of ${seen}`;
  if (deadMs === null || gain === null || follows === null) return `defaults: poor fit (${r2})`;
  const answer = `a change shows after ${two(deadMs / 1000)} s, 10 % more limit is ${two(10 * gain)} % more signal (${r2})`;
  const { cut, raise, headroom } = follows;
  const factors = `cuts × ${two(cut)}, raises × ${two(raise)}, headroom × ${two(headroom)}`;
  return `${answer}; followed by ${number(Math.round(100 * trust))} %: hold-off, ${factors}`;
}

function two(value: number): string {
  return number(Number(value.toPrecision(2)));
}
