/** Where throughput stops to follow load: the Universal Scalability Law, fitted to a service's own minutes. Stage: tune. */
import type { KneePoint } from '../redis/history-rows.js';
import { solveLinear } from './gauss.js';

/** The sums that a fit needs: those of two stretches of time add up to those of both. */
export interface KneeSums {
  points: number;
  /** Σ of the products of (1, N, N² + 2N) ÷ W with each other, upper half, and Σ of each. */
  products: number[];
  totals: number[];
}

export interface Knee {
  /** R(N) = a + b·N + c·(N² + 2N), ms. */
  curve: [a: number, b: number, c: number];
  /** Least requests in flight at which throughput is 95 % of its peak (75 % of what it levels off at, without one). */
  inFlight: number;
  /** Answers per second there. */
  perSecond: number;
  /** The most it can be; at a knee without a peak what it levels off at. */
  mostPerSecond: number;
}

const NEAR_PEAK = 0.95;
/** c below this share of a: no peak within a thousand times what one request alone takes. */
const NO_PEAK = 1e-7;

/**
 * Gunther's law with m others at work: R = a·(1 + α·m + β·m·(m + 1)). Requests come at random, so that m is Poisson
 * about N: on average R(N) = a + aα·N + aβ·(N² + 2N), linear in its three unknowns. Least squares of the relative
 * error, none of the three below zero. (N. J. Gunther, Guerrilla Capacity Planning, 2007; N by Little's law.)
 */
export function kneeSums(points: readonly KneePoint[]): KneeSums {
  const sums = noSums();
  for (const [, n, w] of points) {
    if (!(n > 0 && w > 0 && Number.isFinite(n) && Number.isFinite(w))) continue;
    const row = [1 / w, n / w, (n * n + 2 * n) / w] as const;
    let at = 0;
    for (let i = 0; i < 3; i++) {
      sums.totals[i]! += row[i]!;
      for (let j = i; j < 3; j++) sums.products[at++]! += row[i]! * row[j]!;
    }
    sums.points += 1;
  }
  return sums;
}

/** All together, each as often as `times` says; once without. */
export function addSums(all: readonly KneeSums[], times?: Uint16Array): KneeSums {
  const sums = noSums();
  all.forEach((one, k) => {
    const often = times === undefined ? 1 : times[k]!;
    sums.points += often * one.points;
    for (let i = 0; i < 6; i++) sums.products[i]! += often * one.products[i]!;
    for (let i = 0; i < 3; i++) sums.totals[i]! += often * one.totals[i]!;
  });
  return sums;
}

/** The knee of the best curve; null where throughput only grew with load, so that nothing is known of a knee. */
export function kneeOf(sums: KneeSums): Knee | null {
  const curve = fitCurve(sums);
  if (curve === null) return null;
  const [a, b, c] = curve;
  const throughput = (n: number) => (1000 * n) / (a + b * n + c * (n * n + 2 * n));
  if (c > NO_PEAK * a) {
    const peak = Math.sqrt(a / c);
    const mostPerSecond = throughput(peak);
    // 0.95·X = N ÷ R(N) is a quadratic in N: its smaller root.
    const share = (NEAR_PEAK * mostPerSecond) / 1000;
    const middle = 1 - share * (b + 2 * c);
    const inFlight =
      (middle - Math.sqrt(Math.max(0, middle ** 2 - 4 * share ** 2 * a * c))) / (2 * share * c);
    return { curve, inFlight, perSecond: throughput(inFlight), mostPerSecond };
  }
  if (!(b > NO_PEAK * a)) return null;
  const inFlight = (3 * a) / b;
  return { curve, inFlight, perSecond: throughput(inFlight), mostPerSecond: 1000 / b };
}

/** Share of the relative error that the curve explains beyond one response time for all: 1 all of it, 0 none. */
export function fitQuality(sums: KneeSums, curve: readonly number[]): number {
  const error = errorOf(sums, curve);
  // The one response time with the least relative error.
  const flat = errorOf(sums, [sums.totals[0]! / sums.products[0]!, 0, 0]);
  return flat > 0 ? Math.max(0, 1 - error / flat) : 0;
}

/** Of few unknowns, each set of those that are not zero is tried. */
function fitCurve(sums: KneeSums): [number, number, number] | null {
  let best: { curve: [number, number, number]; error: number } | null = null;
  for (const used of [[0, 1, 2], [0, 1], [0, 2], [0]]) {
    const part = solve(sums, used);
    if (part === null || part.some((value) => !(value >= 0)) || !(part[0]! > 0)) continue;
    const curve: [number, number, number] = [0, 0, 0];
    used.forEach((i, k) => {
      curve[i] = part[k]!;
    });
    const error = errorOf(sums, curve);
    if (best === null || error < best.error) best = { curve, error };
  }
  return best?.curve ?? null;
}

const AT = [
  [0, 1, 2],
  [1, 3, 4],
  [2, 4, 5],
] as const;

/** Σ (row · x − 1)², from the sums alone. */
function errorOf({ products, totals, points }: KneeSums, x: readonly number[]): number {
  let error = points;
  for (let i = 0; i < 3; i++) {
    error -= 2 * x[i]! * totals[i]!;
    for (let j = 0; j < 3; j++) error += x[i]! * x[j]! * products[AT[i]![j]!]!;
  }
  return Math.max(0, error);
}

/** The normal equations of the used unknowns; null where two say the same. */
function solve({ products, totals }: KneeSums, used: readonly number[]): number[] | null {
  // Scaled, so that N² beside 1 costs no digits.
  const scale = used.map((i) => Math.sqrt(products[AT[i]![i]!]!));
  if (scale.some((value) => !(value > 0))) return null;
  const matrix = used.map((i, k) => [
    ...used.map((j, l) => products[AT[i]![j]!]! / (scale[k]! * scale[l]!)),
    totals[i]! / scale[k]!,
  ]);
  return solveLinear(matrix, 1e-10)?.map((value, i) => value / scale[i]!) ?? null;
}

function noSums(): KneeSums {
  return { points: 0, products: [0, 0, 0, 0, 0, 0], totals: [0, 0, 0] };
}
