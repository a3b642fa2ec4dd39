/** The entry `flyball/metrics`: a service's limiters on its own prom-client registry, read when it is scraped. Stage: enforce → report. */
import {
  Counter,
  type CounterConfiguration,
  register as defaultRegister,
  Gauge,
  Histogram,
  type HistogramConfiguration,
  type Registry,
} from 'prom-client';
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';
import { checkKnown } from './known-options.js';
import type { Limiter } from './limiter.js';
import { DECISION_TIME, METRICS, type MetricSpec } from './metric-list.js';
import { LATENCY_EDGES_MS, type LimiterStats } from './stats.js';

export interface CollectMetricsOptions {
  /** Where to register. Default: the global registry of prom-client. */
  register?: Registry;
}

/** What makes limiters by itself, as `createRoutes` does: those that it has at a scrape are shown. */
export interface LimiterGroup {
  limiters(): readonly Limiter[];
}

/** What a registry shows. */
interface Shown {
  limiters: Map<string, Limiter>;
  groups: Set<LimiterGroup>;
}

const PREFIX = 'flyball_enforce_';
const collected = new WeakMap<Registry, Shown>();

/**
 * Shows these limiters on a registry. Nothing is counted a second time: each scrape reads the limiters' own counters.
 * Call it again to add others; a limiter takes the place of an earlier one of its name.
 * @returns a function that takes these limiters off again, and the metrics with the last one
 */
export function collectMetrics(
  limiters: Limiter | LimiterGroup | readonly (Limiter | LimiterGroup)[],
  options: CollectMetricsOptions = {},
): () => void {
  checkKnown('collectMetrics', options, ['register']);
  const register = options.register ?? defaultRegister;
  const added = [limiters].flat() as (Limiter | LimiterGroup)[];
  check(added, register);
  let all = collected.get(register);
  // Somebody may have cleared the registry.
  if (all === undefined || register.getSingleMetric(PREFIX + DECISION_TIME.name) === undefined) {
    all = { limiters: new Map(), groups: new Set() };
    registerAll(all, register);
    collected.set(register, all);
  }
  const shown = all;
  for (const each of added) {
    if (isGroup(each)) shown.groups.add(each);
    else shown.limiters.set(each.name, each);
  }
  return () => {
    for (const each of added) {
      if (isGroup(each)) shown.groups.delete(each);
      else if (shown.limiters.get(each.name) === each) shown.limiters.delete(each.name);
    }
    if (shown.limiters.size + shown.groups.size > 0 || collected.get(register) !== shown) return;
    collected.delete(register);
    for (const { name } of [...METRICS, DECISION_TIME]) register.removeSingleMetric(PREFIX + name);
  };
}

function isGroup(each: Limiter | LimiterGroup): each is LimiterGroup {
  return typeof (each as Partial<LimiterGroup>).limiters === 'function';
}

function check(limiters: readonly (Limiter | LimiterGroup)[], register: Registry): void {
  const wrong = limiters.findIndex(
    (each) => !each || !(isGroup(each) || typeof each.stats === 'function'),
  );
  if (wrong >= 0) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `collectMetrics got ${show(limiters[wrong])}. Give it what createLimiter or createRoutes returned, one or a list.`,
    );
  }
  if (typeof register?.registerMetric !== 'function') {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `register is ${show(register)}. Give a Registry of prom-client, or leave it out for its global one.`,
    );
  }
}

function registerAll(shown: Shown, register: Registry): void {
  const read = createReader(shown);
  for (const spec of METRICS) {
    if (spec.kind === 'counter') new Counter(settings(spec, read, register));
    else new Gauge({ ...settings(spec, read, register), aggregator: spec.together ?? 'sum' });
  }
  new DecisionTimes(read, {
    name: PREFIX + DECISION_TIME.name,
    help: DECISION_TIME.help,
    labelNames: ['limiter'],
    buckets: LATENCY_EDGES_MS.map((ms) => ms / 1000),
    registers: [register],
  });
}

type Reading = readonly (readonly [limiter: string, stats: LimiterStats])[];

/** The counters of all limiters, read once for all metrics of a scrape: those ask in one turn. */
function createReader({ limiters, groups }: Shown): () => Reading {
  let reading: Reading | null = null;
  return () => {
    if (reading === null) {
      const all = new Map<string, Limiter>();
      for (const group of groups) for (const each of group.limiters()) all.set(each.name, each);
      for (const [name, limiter] of limiters) all.set(name, limiter);
      reading = [...all].map(([name, limiter]) => [name, limiter.stats()]);
      queueMicrotask(() => {
        reading = null;
      });
    }
    return reading;
  };
}

function settings(
  spec: MetricSpec,
  read: () => Reading,
  register: Registry,
): CounterConfiguration<string> {
  return {
    name: PREFIX + spec.name,
    help: spec.help,
    labelNames: ['limiter', ...(spec.labels ?? [])],
    registers: [register],
    collect() {
      this.reset();
      for (const [limiter, stats] of read()) {
        for (const [value, labels] of spec.values(stats)) this.inc({ limiter, ...labels }, value);
      }
    },
  };
}

type Answer = Awaited<ReturnType<Histogram<string>['get']>>;

/** A histogram that was counted elsewhere: it answers with what it reads, and is never observed. */
class DecisionTimes extends Histogram<string> {
  readonly #read: () => Reading;
  readonly #facts: { name: string; help: string };

  constructor(read: () => Reading, configuration: HistogramConfiguration<string>) {
    super(configuration);
    this.#read = read;
    this.#facts = { name: configuration.name, help: configuration.help };
  }

  override async get(): Promise<Answer> {
    const { name, help } = this.#facts;
    const values = this.#read().flatMap(([limiter, stats]) => {
      let count = 0;
      const buckets = stats.decisionMs.map((n, i) => {
        count += n;
        const edgeMs = LATENCY_EDGES_MS[i];
        const le = edgeMs === undefined ? '+Inf' : edgeMs / 1000;
        return { metricName: `${name}_bucket`, labels: { le, limiter }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: { limiter }, value: stats.decisionSumMs / 1000 },
        { metricName: `${name}_count`, labels: { limiter }, value: count },
      ];
    });
    // Its typings want a collect function and an enum's number here; it uses neither.
    return { name, help, type: 'histogram', values, aggregator: 'sum' } as unknown as Answer;
  }

  /** What the text format asks for. */
  getForPromString() {
    return this.get();
  }
}
