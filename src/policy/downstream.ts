/** `downstream()`: what several limiters share, and what of their policies does not fit into it. Stage: policy. */
import type { Draft, Report } from './draft.js';
import type { Policy } from './schema.js';
import type { RatioText } from './units.js';

/** Not beside the schema, for that brings zod, and what a policy file imports should load fast. */
export const HEADROOM = 0.2;

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
 * What does not fit, with what mends it: limiters of one downstream that disagree on it, or whose rates, upper or lower
 * bounds add up to more than it leaves.
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
    const each = members.map(({ limiter }) => `${limiter.name} ${usableOf(limiter.downstream!)}`);
    warnings.push(
      `downstream ${name}: its policies do not agree on what it leaves (${each.join(', ')} tokens a second); the least counts. Give all of them one capacity and headroom.`,
    );
  }
  for (const { what, of, mend } of SUMS) {
    const total = sum(members, of);
    if (total <= usable * (1 + 1e-9)) continue;
    const each = members.map((policy) => `${policy.limiter.name} ${of(policy)}`).join(', ');
    const over = Number((total - usable).toPrecision(6));
    warnings.push(
      `downstream ${name}: the ${what} of its limiters (${each}) add up to ${total}, above the ${usable} tokens a second that it leaves. ${mend(over)}`,
    );
  }
  const still = members.filter(({ mode }) => mode !== 'auto').map(({ limiter }) => limiter.name);
  if (still.length > 0 && warnings.length > 0) {
    warnings.push(
      `downstream ${name}: ${still.join(', ')} ${still.length === 1 ? 'is' : 'are'} not in mode auto, so what they have is not moved. Set mode: 'auto' there, or count their rates as taken.`,
    );
  }
  return warnings;
}

/** What is added up, and what to do when it is `over` too much. */
const SUMS = [
  {
    what: 'rates',
    of: ({ limiter }: Policy) => limiter.rate,
    mend: (over: number) =>
      `Lower limiter.rate of some by ${over} together, or raise the capacity if it can take more.`,
  },
  {
    what: 'bounds.rate.max',
    of: ({ limiter, bounds }: Policy) => bounds?.rate.max ?? limiter.rate,
    mend: (over: number) =>
      `In mode auto the law divides it by weight and need; in the others lower them by ${over} together.`,
  },
  {
    what: 'bounds.rate.min',
    of: ({ limiter, bounds }: Policy) => bounds?.rate.min ?? limiter.rate,
    mend: (over: number) =>
      `Nobody is brought below its minimum: lower bounds.rate.min of some by ${over} together.`,
  },
] as const;

function sum(members: readonly Policy[], of: (policy: Policy) => number): number {
  return members.reduce((total, policy) => total + of(policy), 0);
}
