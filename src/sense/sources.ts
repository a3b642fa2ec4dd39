/** Which source gives a signal: a table by the `source` of the signal. Stage: sense. */
import type { Signal } from '../policy/schema.js';
import { createCustomSource, customKey } from './custom.js';
import { createMysqlSource, mysqlKey } from './mysql.js';
import { createPostgresSource, postgresKey } from './postgres.js';
import { createPrometheusSource, prometheusKey } from './prometheus.js';
import { createScrapeSource, scrapeKey } from './scrape.js';
import type { Source, SourceDeps } from './source.js';

/** What is read outside the telemetry, which is a limiter's own and no number by itself. */
export type SourcedSignal = Exclude<Signal, { source: 'telemetry' }>;

type SignalOf<Name extends SourcedSignal['source']> = Extract<SourcedSignal, { source: Name }>;

interface Kind<Name extends SourcedSignal['source']> {
  key: (signal: SignalOf<Name>, env: NodeJS.ProcessEnv) => string;
  create: (signal: SignalOf<Name>, deps: SourceDeps) => Source;
}

const KINDS: { [Name in SourcedSignal['source']]: Kind<Name> } = {
  custom: { key: customKey, create: createCustomSource },
  mysql: { key: mysqlKey, create: createMysqlSource },
  postgres: { key: postgresKey, create: createPostgresSource },
  prometheus: { key: prometheusKey, create: createPrometheusSource },
  scrape: { key: scrapeKey, create: createScrapeSource },
};

export function isSourced(signal: Signal): signal is SourcedSignal {
  return signal.source !== 'telemetry';
}

/** Signals with an equal key are given by one source. It tells nothing of what it is made from. */
export function sourceKey(signal: SourcedSignal, env: NodeJS.ProcessEnv): string {
  return (KINDS[signal.source] as Kind<typeof signal.source>).key(signal, env);
}

/** A source for this signal and all others of its key. Opens nothing before its first look; never throws. */
export function createSource(signal: SourcedSignal, deps: SourceDeps): Source {
  return (KINDS[signal.source] as Kind<typeof signal.source>).create(signal, deps);
}
