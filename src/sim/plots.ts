/** What is drawn of a comparison: load, good answers, response time, and what was in force. Stage: simulate. */
import { addBins, quantileOfBins } from '../histogram.js';
import type { Policy } from '../policy/schema.js';
import type { Comparison, Plant, Result } from './compare.js';
import type { Plot } from './plot.js';
import { quantileIn } from './score.js';
import { latencyObjectiveMs } from './service.js';

/** Load, good answers, response time, rate, in flight; the page's and the picture's. */
export function plotsOf(
  policy: Policy,
  plant: Plant,
  { scenario, results }: Pick<Comparison, 'scenario' | 'results'>,
): Plot[] {
  const { policy: own, best, none } = results;
  const quantile = quantileIn(policy);
  const objective = latencyObjectiveMs(policy);
  const shaded = openSpans(own);
  const common = { shaded, marks: scenario.phases.slice(1) };
  const carried = plant.capacityPerSecond;
  const offered = own.seconds.map((second) => second.offered);
  const times = quantiles(own, quantile);
  return [
    {
      ...common,
      title: 'Load',
      unit: 'requests a second',
      lines: [
        { title: 'offered', style: 'offered', values: offered },
        {
          title: 'admitted',
          style: 'admitted',
          values: own.seconds.map((second) => second.admitted),
        },
      ],
    },
    {
      ...common,
      title: 'Good answers',
      unit: 'a second',
      most: 2.5 * carried,
      lines: [
        { title: 'no limit', style: 'none', values: none.seconds.map(({ good }) => good) },
        {
          title: 'best constant limits',
          style: 'best',
          values: best.seconds.map(({ good }) => good),
        },
        { title: 'this policy', style: 'own', values: own.seconds.map(({ good }) => good) },
      ],
    },
    {
      ...common,
      title: `Response time, p${Number((100 * quantile).toPrecision(4))}`,
      unit: objective === null ? 'ms' : `ms, objective ${objective} ms`,
      ...(objective === null ? {} : { objective, most: 4 * objective }),
      lines: [{ title: 'this policy', style: 'own', values: times }],
    },
    {
      ...common,
      title: 'In force: rate',
      unit: 'a second',
      lines: [{ title: 'rate', style: 'own', values: own.seconds.map(({ rate }) => rate) }],
    },
    {
      ...common,
      title: 'In flight',
      unit: 'requests',
      lines: [
        {
          title: 'cap in force',
          style: 'own',
          values: own.seconds.map(({ inFlightMax }) => (inFlightMax > 0 ? inFlightMax : null)),
        },
        {
          title: 'under way',
          style: 'admitted',
          values: own.seconds.map(({ inFlight }) => inFlight),
        },
      ],
    },
  ];
}

/** Response time by windows of three seconds; null of nothing. */
export function quantiles(
  { seconds }: Pick<Result, 'seconds'>,
  quantile: number,
): (number | null)[] {
  return seconds.map((_, s) => {
    const bins = {};
    for (const { latency } of seconds.slice(Math.max(0, s - 1), s + 2)) addBins(bins, latency);
    return quantileOfBins(bins, quantile);
  });
}

/** Spans of seconds in which the breaker was not closed, from the changes. */
export function openSpans({ changes, seconds }: Result): [number, number][] {
  const spans: [number, number][] = [];
  let from: number | null = null;
  for (const { atMs, decision } of changes) {
    const isOpen = decision.state === 'open' || decision.state === 'half-open';
    if (isOpen && from === null) from = atMs / 1000;
    else if (!isOpen && from !== null) {
      spans.push([from, atMs / 1000]);
      from = null;
    }
  }
  if (from !== null) spans.push([from, seconds.length]);
  return spans;
}
