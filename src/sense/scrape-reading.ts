/** What a signal is on a page, and between it and the page before: a number, or why there is none. Pure. Stage: sense. */
import type { HttpSignal } from './http-target.js';
import type { Missing } from './readings.js';
import { bucketQuantile, gains, type Labels, matches, total } from './scrape-numbers.js';
import type { Page, Sample } from './scrape-parse.js';
import { missing } from './source.js';

export type ScrapeSignal = Extract<HttpSignal, { source: 'scrape' }>;

/** A page and the moment it was asked for, on the daemon's monotonic clock. */
export interface Taken {
  page: Page;
  monotonicMs: number;
  /** The server's wall time, where it says so. */
  serverMs: number | null;
}

export interface PageNumber {
  value: number;
  count: number;
  detail?: string;
  /** Wall ms that the page itself gives the samples; null: they are of the moment of the page. */
  stampMs: number | null;
}

/** The full names of the samples that a signal is made from. */
export function sampleNames(signal: ScrapeSignal): string[] {
  const { metric } = signal;
  switch (signal.stat) {
    case 'gauge':
      return [metric];
    case 'rate':
      return counterNames(metric);
    case 'share':
      return [...counterNames(metric), ...counterNames(signal.over.metric ?? metric)];
    case 'histogram':
      return [`${metric}_bucket`, `${metric}_count`, `${metric}_sum`];
  }
}

/** OpenMetrics names the family without `_total`; people write either. */
function counterNames(metric: string): string[] {
  return metric.endsWith('_total') ? [metric] : [metric, `${metric}_total`];
}

/** `repeated`: by its own times the page says what the one before said. */
export function pageNumber(
  signal: ScrapeSignal,
  before: Taken | null,
  now: Taken,
): PageNumber | Missing | 'repeated' {
  if (signal.stat === 'gauge') return gauge(signal, now.page);
  const unfit =
    absence(signal.metric, sampleNames(signal), now.page) ?? noCounter(signal, now.page);
  if (unfit !== null) return unfit;
  if (before === null || !sampleNames(signal).every((name) => before.page.wanted.has(name))) {
    return missing('not_started', 'a rate needs two pages; this is the first');
  }
  const seconds = secondsBetween(before, now, sampleNames(signal));
  if (!(seconds > 0)) return 'repeated';
  switch (signal.stat) {
    case 'rate':
      return rate(signal, before.page, now.page, seconds);
    case 'share':
      return share(signal, before.page, now.page);
    case 'histogram':
      return histogram(signal, before.page, now.page);
  }
}

function gauge(signal: Extract<ScrapeSignal, { stat: 'gauge' }>, page: Page): PageNumber | Missing {
  const { metric, labels, aggregate } = signal;
  const type = page.types.get(metric) ?? page.types.get(metric.replace(/_total$/, ''));
  if (type === 'counter' || type === 'histogram') {
    const use = type === 'counter' ? 'scrape.rate' : 'scrape.quantile or scrape.mean';
    return missing('error', `${metric} is a ${type}, not a gauge. Use ${use}.`);
  }
  const all = page.samples.get(metric) ?? [];
  const found = all.filter((sample) => matches(sample, labels));
  if (found.length === 0) {
    return absence(metric, [metric], page) ?? missing('no_data', noneMatch(metric, labels, all));
  }
  if (found.length > 1 && aggregate === undefined) {
    return missing(
      'ambiguous',
      `${found.length} series match, and one number is wanted. Give labels (${labelNames(found)}) or aggregate: 'sum'.`,
    );
  }
  const values = found.map(({ value }) => value).filter((value) => !Number.isNaN(value));
  if (values.length === 0) return missing('not_finite', `${metric} is NaN`);
  const sum = values.reduce((all, value) => all + value, 0);
  const combined = {
    sum,
    avg: sum / values.length,
    max: values.reduce((high, value) => Math.max(high, value)),
    min: values.reduce((low, value) => Math.min(low, value)),
  }[aggregate ?? 'sum'];
  return { value: combined, count: 1, stampMs: stampOf(found) };
}

/** A gauge goes up and down: what it gained between two looks is no rate of anything. */
function noCounter(signal: Exclude<ScrapeSignal, { stat: 'gauge' }>, page: Page): Missing | null {
  if (signal.stat === 'histogram') return null;
  const names = [signal.metric, ...(signal.stat === 'share' ? [signal.over.metric ?? []] : [])];
  const wrong = names.flat().find((name) => page.types.get(name) === 'gauge');
  if (wrong === undefined) return null;
  return missing('error', `${wrong} is a gauge, not a counter. Use scrape.gauge.`);
}

function rate(
  { metric, labels }: Extract<ScrapeSignal, { stat: 'rate' }>,
  before: Page,
  now: Page,
  seconds: number,
): PageNumber | Missing {
  const series = samplesOf(now, counterNames(metric));
  const gained = gains(samplesOf(before, counterNames(metric)), series, labels);
  const none = gained.length === 0 ? { detail: noneMatch(metric, labels, series) } : {};
  return (
    fell(gained) ?? {
      ...{ value: total(gained) / seconds, count: 1, ...none },
      stampMs: stampOf(series),
    }
  );
}

function share(
  { metric, labels, over }: Extract<ScrapeSignal, { stat: 'share' }>,
  before: Page,
  now: Page,
): PageNumber | Missing {
  const whole = counterNames(over.metric ?? metric);
  const all = gains(samplesOf(before, whole), samplesOf(now, whole), over.labels);
  if (all.length === 0) {
    return missing('no_data', noneMatch(whole[0]!, over.labels, samplesOf(now, whole)));
  }
  const series = samplesOf(now, counterNames(metric));
  const part = gains(samplesOf(before, counterNames(metric)), series, labels);
  const wrong = fell(all) ?? fell(part);
  if (wrong !== null) return wrong;
  const count = total(all);
  if (count === 0) return missing('no_traffic', 'nothing was counted since the last page');
  const value = total(part) / count;
  if (value > 1.000001) {
    return missing('error', `the part is larger than the whole: is ${whole[0]} what it is of?`);
  }
  // Nothing of the part was ever seen, while the whole is there: none of it happened.
  const none = part.length === 0 ? { detail: noneMatch(metric, labels, series) } : {};
  return { value: Math.min(1, value), count, ...none, stampMs: stampOf(samplesOf(now, whole)) };
}

function histogram(
  { metric, labels, of }: Extract<ScrapeSignal, { stat: 'histogram' }>,
  before: Page,
  now: Page,
): PageNumber | Missing {
  const gained = (suffix: string) =>
    gains(
      before.samples.get(metric + suffix) ?? [],
      now.samples.get(metric + suffix) ?? [],
      labels,
    );
  const counts = gained('_count');
  const buckets = gained('_bucket');
  const wrong = fell(counts) ?? fell(buckets);
  if (wrong !== null) return wrong;
  const series = now.samples.get(`${metric}_count`) ?? [];
  if (counts.length === 0) return missing('no_data', noneMatch(metric, labels, series));
  const count = total(counts);
  if (count === 0) return missing('no_traffic', 'nothing was observed since the last page');
  const stampMs = stampOf(series);
  if (of === 'mean') return { value: total(gained('_sum')) / count, count, stampMs };
  const found = bucketQuantile(buckets, of);
  if (found === null && buckets.length > 0) {
    return missing(
      'error',
      `${metric} counted ${count} observations, and none of them in a bucket`,
    );
  }
  if (found === null) {
    const mend =
      "Read a quantile of its own: scrape.gauge(url, metric, { labels: { quantile: '0.95' } })";
    return missing('error', `${metric} has no buckets: it is a summary. ${mend}, or scrape.mean.`);
  }
  const detail = found.beyond ? { detail: 'beyond the highest bucket: the truth is higher' } : {};
  return { value: found.value, count, ...detail, stampMs };
}

/** Single series that ran back in a process that did not restart: somebody reset or removed them. */
function fell(gained: readonly { sample: Sample; gain: number }[]): Missing | null {
  const wrong = gained.find(({ gain }) => !(gain >= 0));
  if (wrong === undefined) return null;
  const labels = JSON.stringify(wrong.sample.labels);
  if (!Number.isFinite(wrong.gain)) return missing('not_finite', `series ${labels} is no count`);
  return missing('reset', `series ${labels} ran back by ${-wrong.gain}`);
}

function samplesOf(page: Page, names: readonly string[]): Sample[] {
  return names.flatMap((name) => page.samples.get(name) ?? []);
}

/** Neither a series nor a word of the metric: a wrong name, not a zero. */
function absence(metric: string, names: readonly string[], page: Page): Missing | null {
  const family = metric.replace(/_total$/, '');
  const known = names.some((name) => page.samples.has(name));
  if (known || page.types.has(metric) || page.types.has(family)) return null;
  const near = [...page.types.keys()].filter((name) => name.includes(family.split('_')[0]!));
  const hint = near.length > 0 ? ` It has: ${near.slice(0, 5).join(', ')}.` : '';
  return missing('no_data', `the page has no metric ${metric}.${hint}`);
}

function noneMatch(metric: string, labels: Labels = {}, all: readonly Sample[]): string {
  const wanted = JSON.stringify(labels);
  return `no series of ${metric} has ${wanted}${all.length > 0 ? `; there are ${all.length} with ${labelNames(all)}` : ' yet'}`;
}

function labelNames(samples: readonly Sample[]): string {
  const names = new Set(samples.slice(0, 100).flatMap(({ labels }) => Object.keys(labels)));
  return names.size === 0 ? 'no labels' : [...names].join(', ');
}

function stampOf(samples: readonly Sample[]): number | null {
  const stamps = samples.map(({ timestampMs }) => timestampMs).filter((at) => at !== null);
  return stamps.length === 0 ? null : stamps.reduce((newest, at) => Math.max(newest, at));
}

/** By the page's own times where it gives them, for then it may be older than the look. */
function secondsBetween(before: Taken, now: Taken, names: readonly string[]): number {
  const [last, stamp] = [before, now].map(({ page }) => stampOf(samplesOf(page, names)));
  if (last == null || stamp == null) return (now.monotonicMs - before.monotonicMs) / 1000;
  return (stamp - last) / 1000;
}
