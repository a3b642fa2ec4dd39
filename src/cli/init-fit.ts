/** Measures a service for a while: what it reports to Redis, its /metrics page, its database; asks each second, changes nothing. Stage: cli. */
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../clock.js';
import { packBins, quantileOfFrames } from '../estimate/bins.js';
import { createLog } from '../log.js';
import { mysql, postgres, scrape } from '../policy/builders-sources.js';
import { policySchema, type Signal } from '../policy/schema.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import type { TelemetryReading } from '../sense/readings.js';
import { createSourcePool } from '../sense/source-pool.js';
import { isSourced, type SourcedSignal } from '../sense/sources.js';
import { createTelemetrySource } from '../sense/telemetry.js';
import { percentile } from '../tune/usable.js';
import type { Fit } from './init-size.js';
import type { FoundDatabase } from './init-surroundings.js';

export interface FitOptions {
  /** null: Redis does not answer; then what services report is not known. */
  redis: RedisClient | null;
  address: LimiterAddress;
  database: FoundDatabase | null;
  /** A /metrics page of one process, and the histogram of its response times in seconds. */
  page: { url: string; metric: string } | null;
  forMs: number;
  /** Ends it sooner; what was seen counts. */
  signal: AbortSignal;
  env: NodeJS.ProcessEnv;
  onSecond?(fit: Fit, leftMs: number): void;
}

const EVERY_MS = 1000;
/** One second in twenty may be a burst that nobody should size for. */
const BUSY = 0.95;

export async function measure(options: FitOptions): Promise<Fit> {
  const { redis, address, forMs, signal, env, onSecond } = options;
  const clock = systemClock;
  const log = createLog({ level: 'silent', fd: 2 });
  const telemetry = redis && createTelemetrySource({ redis, address, clock });
  const pool = createSourcePool({
    ...{ env: envOf(options, env), log, clock },
    everyMs: EVERY_MS / 2,
  });
  const opened = pool.open(signalsOf(options));
  const seen = emptySeen();
  const began = clock.monotonicMs();
  const passed = () => clock.monotonicMs() - began;
  try {
    for (;;) {
      const next = passed() + EVERY_MS;
      const [look] = await Promise.all([telemetry?.read(), opened.ask()]);
      if (look?.reading.kind === 'telemetry') addTelemetry(seen, look.reading);
      else if (look && look.reading.reason !== 'not_started') {
        seen.reasons.set('telemetry', wordsOf(look.reading));
      }
      for (const [name, found] of opened.newest()) {
        if (found.kind === 'value') addNumber(seen, name, found.value, found.detail);
        else if (found.reason !== 'not_started') seen.reasons.set(name, wordsOf(found));
      }
      const fit = fitOf(seen, passed());
      onSecond?.(fit, Math.max(0, forMs - passed()));
      if (signal.aborted || passed() >= forMs) return fit;
      await setTimeout(Math.max(0, Math.min(next, forMs) - passed()), undefined, { signal }).catch(
        () => {},
      );
    }
  } finally {
    await opened.close();
  }
}

/** An address from a file is known to nobody but us: the sources look it up as they would in the environment. */
function envOf({ database }: FitOptions, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return database?.url ? { ...env, [database.variable]: database.url } : env;
}

function signalsOf({ database, page }: FitOptions): Record<string, SourcedSignal> {
  const url = { env: database?.variable ?? '' };
  const of = { postgres, mysql }[database?.kind ?? 'postgres'];
  const signals = {
    ...(database?.url
      ? { waiting: of.waiting({ url }), connections: of.connectionsRatio({ url }) }
      : {}),
    ...(page === null
      ? {}
      : {
          pageRate: scrape.rate(page.url, `${page.metric}_count`),
          pageP95: scrape.quantile(page.url, page.metric, 'p95', { unit: 'seconds' }),
        }),
  };
  const policy = policySchema.parse({ limiter: { name: 'fit', rate: 1, capacity: 1 }, signals });
  return Object.fromEntries(
    Object.entries(policy.signals).filter((one): one is [string, SourcedSignal] =>
      isSourced(one[1] as Signal),
    ),
  );
}

interface Seen {
  telemetry: TelemetryReading[];
  numbers: Map<string, number[]>;
  connections: string | null;
  /** Why something is missing, as last told. */
  reasons: Map<string, string>;
}

function emptySeen(): Seen {
  return { telemetry: [], numbers: new Map(), connections: null, reasons: new Map() };
}

function addTelemetry(seen: Seen, reading: TelemetryReading): void {
  seen.telemetry.push(reading);
  seen.reasons.delete('telemetry');
}

function addNumber(seen: Seen, name: string, value: number, detail: string | undefined): void {
  seen.reasons.delete(name);
  seen.numbers.set(name, [...(seen.numbers.get(name) ?? []), value]);
  if (name === 'connections' && detail !== undefined) seen.connections = detail;
}

const SHOWN: Readonly<Record<string, string>> = {
  telemetry: 'services (telemetry in Redis)',
  waiting: 'the database',
  connections: 'the database',
  pageRate: 'the /metrics page',
  pageP95: 'the /metrics page',
};

function fitOf({ telemetry, numbers, connections, reasons }: Seen, passedMs: number): Fit {
  const sum = (of: (one: TelemetryReading) => number) =>
    telemetry.reduce((total, one) => total + of(one), 0);
  const perSecond = telemetry.map(
    ({ offered, fromMs, toMs }) => offered / (Math.max(100, toMs - fromMs) / 1000),
  );
  const offered = sum((one) => one.offered);
  const ended = sum((one) => one.ok + one.failed);
  const frames = telemetry.map((one) => ({ bins: packBins(one.latency) }));
  const reports = telemetry.some((one) => one.reporting > 0);
  const told = offered > 0;
  const pageRate = numbers.get('pageRate') ?? [];
  const busy = told ? percentile(perSecond, BUSY) : percentile(pageRate, BUSY);
  const missed = new Set([...reasons].map(([name, why]) => `${SHOWN[name]}: ${why}`));
  const answered = [...(told ? ['telemetry'] : []), ...numbers.keys()];
  return {
    seconds: Math.round(passedMs / 1000),
    requests: told ? offered : Math.round(pageRate.reduce((a, b) => a + b, 0)),
    perSecond: busy !== null && busy > 0 ? busy : null,
    p95Ms:
      (told ? quantileOfFrames(frames, 0, 0.95) : null) ??
      percentile(numbers.get('pageP95') ?? [], 0.5),
    errorRatio: ended > 0 ? sum((one) => one.failed) / ended : null,
    inFlight: reports ? Math.max(...telemetry.map((one) => one.inFlight)) : null,
    waiting: percentile(numbers.get('waiting') ?? [], 1),
    connections,
    from: [...new Set(answered.map((name) => SHOWN[name]!))],
    missing: [...missed],
  };
}

function wordsOf({ reason, detail }: { reason: string; detail?: string }): string {
  return detail ?? reason;
}
