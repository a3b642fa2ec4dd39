/** `downstream()`: what several limiters share, and what of their policies does not fit into it. Stage: policy. */
import { HEADROOM } from './downstream-schema.js';
import type { Draft, Report } from './draft.js';
import type { Policy } from './schema.js';
import type { RatioText } from './units.js';

export interface DownstreamOptions {
  /** What it can take, over all limiters in front of it: tokens per second. */
  capacity: number;
  /** Share of it that stays free. Default 0.2. */
  headroom?: number | RatioText;
  /** What this limiter's need counts for beside the others'. Default 1. */
  weight?: number;
}

/** What a limiter shares with others: `limiter: { downstream: downstream('orders-db', { capacity: 2000 }) }`. */
export function downstream(name: string, options: DownstreamOptions) {
  return { name, ...options };
}

type Downstream = NonNullable<Policy['limiter']['downstream']>;

/** What the limiters in front of it may have together. */
export function usableOf({ capacity, headroom = HEADROOM }: Downstream): number {
  return capacity * (1 - headroom);
}

export function checkDownstream(draft: Draft, report: Report): void {
  const { capacity, headroom = HEADROOM, name = '' } = draft.limiter?.downstream ?? {};
  if (capacity === undefined) return;
  if (headroom >= 1) {
    report(
      'limiter.downstream.headroom',
      `is ${headroom}: nothing of ${name} would be left. Give a share below 1: 20 % is '20%'.`,
    );
    return;
  }
  const usable = capacity * (1 - headroom);
  const min = draft.bounds?.rate?.min;
  if (min !== undefined && min > usable) {
    report(
      'bounds.rate.min',
      `is ${min}, above the ${usable} tokens a second that limiter.downstream leaves (capacity ${capacity}, headroom ${headroom}). Lower it.`,
    );
  }
}

/**
 * What does not fit, one sentence each: limiters of one downstream that disagree on it, or whose rates, upper bounds or
 * lower bounds add up to more than it leaves.
 */
export function downstreamWarnings(policies: readonly Policy[]): string[] {
  const groups = new Map<string, Policy[]>();
  for (const policy of policies) {
    const name = policy.limiter.downstream?.name;
    if (name !== undefined) groups.set(name, [...(groups.get(name) ?? []), policy]);
  }
  return [...groups].flatMap(([name, members]) => warningsOf(name, members));
}

function warningsOf(name: string, members: readonly Policy[]): string[] {
  const usable = Math.min(...members.map(({ limiter }) => usableOf(limiter.downstream!)));
  const most = Math.max(...members.map(({ limiter }) => usableOf(limiter.downstream!)));
  const warnings: string[] = [];
  if (most > usable) {
    warnings.push(
      `downstream ${name}: its policies do not agree on what it leaves (${usable} to ${most} tokens a second); the least counts.`,
    );
  }
  const sums = [
    ['rates', sum(members, ({ limiter }) => limiter.rate), ''],
    [
      'bounds.rate.max',
      sum(members, ({ limiter, bounds }) => bounds?.rate.max ?? limiter.rate),
      '; in mode auto the law divides it by weight and need',
    ],
    [
      'bounds.rate.min',
      sum(members, ({ limiter, bounds }) => bounds?.rate.min ?? limiter.rate),
      ', and nobody is brought below its minimum',
    ],
  ] as const;
  const names = members.map(({ limiter }) => limiter.name).join(', ');
  for (const [what, total, rest] of sums) {
    if (total <= usable * (1 + 1e-9)) continue;
    warnings.push(
      `downstream ${name}: the ${what} of ${names} add up to ${total}, above the ${usable} tokens a second that it leaves${rest}.`,
    );
  }
  const still = members.filter(({ mode }) => mode !== 'auto').map(({ limiter }) => limiter.name);
  if (still.length > 0 && warnings.length > 0) {
    warnings.push(
      `downstream ${name}: ${still.join(', ')} ${still.length === 1 ? 'is' : 'are'} not in mode auto, so what they have is not moved.`,
    );
  }
  return warnings;
}

function sum(members: readonly Policy[], of: (policy: Policy) => number): number {
  return members.reduce((total, policy) => total + of(policy), 0);
}
