/** Results as rows for tables: one a scenario, the seeds brought together. Stage: simulate. */
import { CONTENDERS, type Comparison, type Contender, type Result } from './compare.js';
import type { Score } from './score.js';

/** What a policy is judged by in a scenario. */
export interface Figures {
  /** Good answers ÷ those of the best constant limits: mean of the seeds. */
  goodput: number;
  goodPerSecond: number;
  /** Mean of the seeds. */
  sloMissedS: number;
  /** The longest of the seeds; null: nothing to converge from. */
  convergenceS: number | null;
  /** The largest of the seeds. */
  overshoot: number;
  changesPerMinute: number;
  /** Of all seeds together. */
  falseTrips: number;
}

export interface Row {
  scenario: string;
  says: string;
  seeds: number[];
  goodput: Record<Contender, number>;
  policy: Figures;
  bestPerSecond: number;
}

/** How contenders are called in tables. */
export const TITLES: Record<Contender, string> = {
  policy: 'policy',
  none: 'no limit',
  static: 'static',
  step: 'step rule',
  best: 'best',
};

export function figuresOf(scores: readonly Score[]): Figures {
  const converged = scores.flatMap(({ convergenceS }) => convergenceS ?? []);
  return {
    goodput: mean(scores.map(({ goodput }) => goodput)),
    goodPerSecond: mean(scores.map(({ goodPerSecond }) => goodPerSecond)),
    sloMissedS: mean(scores.map(({ sloMissedS }) => sloMissedS)),
    convergenceS: converged.length > 0 ? Math.max(...converged) : null,
    overshoot: Math.max(...scores.map(({ overshoot }) => overshoot)),
    changesPerMinute: mean(scores.map(({ changesPerMinute }) => changesPerMinute)),
    falseTrips: scores.reduce((sum, { falseTrips }) => sum + falseTrips, 0),
  };
}

/** One scenario under one or more seeds. */
export function rowOf(comparisons: readonly Comparison[]): Row {
  const { scenario } = comparisons[0]!;
  const of = (contender: Contender) => comparisons.map(({ results }) => results[contender]);
  const goodput = CONTENDERS.map((contender) => [contender, figuresOf(scores(of(contender)))]);
  return {
    scenario: scenario.name,
    says: scenario.says,
    seeds: comparisons.map(({ seed }) => seed),
    goodput: Object.fromEntries(
      goodput.map(([contender, figures]) => [contender, (figures as Figures).goodput]),
    ) as Row['goodput'],
    policy: figuresOf(scores(of('policy'))),
    bestPerSecond: mean(of('best').map(({ score }) => score.goodPerSecond)),
  };
}

/** Mean goodput of the scenarios, each counting alike. */
export function meanGoodput(rows: readonly Row[], of: Contender): number {
  return mean(rows.map(({ goodput }) => goodput[of]));
}

/** Heads of the table and its cells, as text. */
export const HEAD = [
  'scenario',
  ...CONTENDERS.slice(0, 4).map((contender) => TITLES[contender]),
  'best',
  'SLO missed',
  'converges',
  'overshoot',
  'changes/min',
  'false trips',
];

export function cellsOf({ scenario, goodput, policy, bestPerSecond }: Row): string[] {
  return [
    scenario,
    ...CONTENDERS.slice(0, 4).map((contender) => goodput[contender].toFixed(3)),
    `${bestPerSecond < 10 ? bestPerSecond.toFixed(1) : bestPerSecond.toFixed(0)}/s`,
    `${Math.round(policy.sloMissedS)} s`,
    policy.convergenceS === null ? '–' : `${Math.round(policy.convergenceS)} s`,
    `${Math.round(100 * policy.overshoot)} %`,
    policy.changesPerMinute.toFixed(1),
    String(policy.falseTrips),
  ];
}

function scores(results: readonly Result[]): Score[] {
  return results.map(({ score }) => score);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
