/** What a policy says of single subjects, as the one text that the scripts read. Stage: policy → enforce. */

/** Good outcomes in a row raise a subject's numbers; another outcome brings them back. */
export interface Tiers {
  /** The outcome that counts. */
  on: string;
  /** Those that begin the row anew. Default `failed`. */
  resetOn?: readonly string[] | undefined;
  /** A row without an outcome is forgotten after this, ms. Default 30 days. */
  keptFor?: number | undefined;
  steps: readonly {
    times: number;
    capacity?: number | undefined;
    rate?: number | undefined;
  }[];
}

export const DEFAULT_RESET_ON = ['failed'] as const;
export const DEFAULT_KEPT_FOR_MS = 30 * 86_400_000;

/** `fair=1 max=<n> on=<name> reset=<name>,… keep=<ms> step=<times>:<capacity or ->:<rate or ->`; empty: it says nothing. */
export function subjectTermsText(
  max: number | undefined,
  tiers: Tiers | undefined,
  fair = false,
): string {
  const parts: string[] = [];
  if (fair) parts.push('fair=1');
  if (max !== undefined) parts.push(`max=${max}`);
  if (tiers !== undefined) {
    const { on, resetOn = DEFAULT_RESET_ON, keptFor = DEFAULT_KEPT_FOR_MS, steps } = tiers;
    parts.push(`on=${on}`, `reset=${resetOn.join(',')}`, `keep=${Math.round(keptFor)}`);
    for (const { times, capacity = '-', rate = '-' } of steps) {
      parts.push(`step=${times}:${capacity}:${rate}`);
    }
  }
  return parts.join(' ');
}

/** Of that text what concerns all subjects together. */
export function crowdTerms(terms: string): { fair: boolean; max: number | null } {
  const max = /(?:^| )max=(\d+)/.exec(terms)?.[1];
  return { fair: /(?:^| )fair=1(?: |$)/.test(terms), max: max === undefined ? null : Number(max) };
}
