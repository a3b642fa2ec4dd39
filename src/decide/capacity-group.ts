/** Divides what a downstream can take among the limiters in front of it: max-min by need, by weight. Stage: decide. */

/** One limiter of a capacity group; rates in tokens per second. */
export interface GroupMember {
  name: string;
  weight: number;
  /** Its policy's bounds: it never gets less than `min`, whatever the sum. */
  min: number;
  max: number;
  /** What it would use now; null: not known, and then all it may have. */
  need: number | null;
  /** It cannot be moved (a person's hold, a mode that does not move): this much is taken. */
  fixed?: number;
}

/** Bisections of the water level: far below the third digit that rates are rounded to. */
const HALVINGS = 60;

/**
 *   first   share = clamp(level · weight, min, need)     the level at which Σ shares is the capacity
 *   then    what nobody needs, by weight, up to max
 *
 * So nobody gets more than it needs while another, for its weight, gets less and needs more; nothing is left over while
 * anyone may have more. The sum is within the capacity unless what is fixed and the minima alone are more.
 */
export function divide(capacity: number, members: readonly GroupMember[]): Map<string, number> {
  const free = members.filter(({ fixed }) => fixed === undefined);
  const taken = members.reduce((sum, { fixed = 0 }) => sum + fixed, 0);
  const left = Math.max(0, capacity - taken);
  const weights = free.map(({ weight }) => weight);
  const least = free.map(({ min }) => min);
  const most = free.map(({ min, max }) => Math.max(min, max));
  const needs = free.map(({ need }, i) =>
    Math.min(most[i]!, Math.max(least[i]!, need ?? Number.POSITIVE_INFINITY)),
  );
  const needed = fill(left, weights, least, needs);
  const shares = fill(left, weights, needed, most);
  const result = new Map(members.map(({ name, fixed = 0 }) => [name, fixed]));
  free.forEach(({ name }, i) => {
    result.set(name, shares[i]!);
  });
  return result;
}

/** `level · weight` of each, between its least and most, so that the sum is `total`, or all at an end. */
function fill(
  total: number,
  weights: readonly number[],
  least: readonly number[],
  most: readonly number[],
): number[] {
  const at = (level: number) =>
    weights.map((weight, i) => Math.min(most[i]!, Math.max(least[i]!, level * weight)));
  const sum = (shares: readonly number[]) => shares.reduce((all, share) => all + share, 0);
  if (sum(most) <= total) return [...most];
  if (sum(least) >= total) return [...least];
  let low = 0;
  let high = Math.max(...weights.map((weight, i) => most[i]! / weight));
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (sum(at(middle)) <= total) low = middle;
    else high = middle;
  }
  return at(low);
}

/** What a limiter would use, from its traffic: all that asks, in tokens as far as a rate that binds tells them. */
export function needOf(
  traffic: { offeredRate: number; admittedRate: number; deniedByRate: number },
  rate: number,
): number {
  const { offeredRate, admittedRate, deniedByRate } = traffic;
  const binds = deniedByRate > 0 && admittedRate > 0;
  return offeredRate * (binds ? Math.max(1, rate / admittedRate) : 1);
}

/** Room above what is seen, and steps of a tenth, so that shares do not move with every breath. */
const NEED_ROOM = 1.25;
const NEED_STEP = Math.log(1.1);
/** A need falls by this share a second: the next burst is like the last. */
const NEED_FADE = 0.2;

/** The need with its room: rises at once, falls slowly. */
export function needLevel(before: number | null, seen: number, dtMs: number): number {
  const faded = (before ?? 0) * (1 - NEED_FADE) ** (Math.max(0, dtMs) / 1000);
  return Math.max(faded, NEED_ROOM * seen);
}

/** What the group is told of it: the next step up. */
export function toldNeed(level: number): number {
  return level <= 1e-6 ? 0 : Math.exp(Math.ceil(Math.log(level) / NEED_STEP - 1e-9) * NEED_STEP);
}
