/** The tiers of a policy's subjects, read from the text that the scripts read, and which one a row of outcomes has reached. Pure. Stage: cli, api. */

export interface TierView {
  /** Good outcomes in a row from which on it holds. */
  times: number;
  /** null: the policy's. */
  rate: number | null;
  capacity: number | null;
}

/** `step=<times>:<capacity or ->:<rate or ->`, in order of times. */
export function tiersOf(terms: string): TierView[] {
  return [...terms.matchAll(/step=(\d+):([^: ]+):([^: ]+)/g)].map(([, times, capacity, rate]) => ({
    times: Number(times),
    rate: part(rate!),
    capacity: part(capacity!),
  }));
}

export function tierOf(
  tiers: readonly TierView[],
  streak: number | null,
): { tier: TierView | null; next: TierView | null } {
  const reached = tiers.filter(({ times }) => (streak ?? 0) >= times);
  return { tier: reached.at(-1) ?? null, next: tiers[reached.length] ?? null };
}

function part(text: string): number | null {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : null;
}
