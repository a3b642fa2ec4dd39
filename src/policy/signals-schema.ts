/** What a policy says of its signals: one strict schema a source. Stage: policy. */
import { z } from 'zod';
import { text } from './fields.js';
import { of, telemetrySignal } from './telemetry-schema.js';
import { time } from './units.js';

/** A secret or address that only the reading daemon resolves; the reference is what is stored and hashed. */
const VARIABLE = /^[A-Z][A-Z0-9_]{0,127}$/;
export const envRef = z.strictObject({
  env: text(VARIABLE, "the name of an environment variable ('DATABASE_URL')"),
});

/** The same where nothing else may stand; a fault does not repeat what was written. */
const secretRef = z.custom<{ env: string }>(
  (value) => {
    const { env, ...rest } = (value ?? {}) as Record<string, unknown>;
    return typeof env === 'string' && VARIABLE.test(env) && Object.keys(rest).length === 0;
  },
  { error: () => "is no reference, and a policy is no place for a secret. Write env('…')." },
);

const UNITS = ['count', 'ratio', 'perSecond', 'seconds', 'milliseconds'] as const;
export type Unit = (typeof UNITS)[number];

/** What a number of no stated kind is measured in; times come in as milliseconds. Default 'count'. */
const unit = z.enum(UNITS).optional();
const aggregate = z.enum(['sum', 'max', 'min', 'avg']).optional();
/** Time the reading may take, within one tick. Default 800 ms. */
const deadlineMs = time({ min: 10, max: 1000 });

const WAITS = ['Lock', 'LWLock', 'BufferPin', 'Buffer', 'IO', 'IPC'] as const;

const postgresSignal = z.strictObject({
  source: z.literal('postgres'),
  stat: z.enum(['waiting', 'connectionsRatio', 'longestTransactionMs', 'replicaLagMs']),
  url: z.union([envRef, z.string()]),
  deadlineMs: deadlineMs.default(800),
  /** Of `waiting`: only these kinds of wait count. Default: all. */
  for: z.array(z.enum(WAITS)).min(1).optional(),
});

const mysqlSignal = z.strictObject({
  source: z.literal('mysql'),
  stat: z.enum([
    'threadsRunning',
    'waiting',
    'lockWaits',
    'lockTimeMs',
    'connectionsRatio',
    'replicaLagMs',
  ]),
  url: z.union([envRef, z.string()]),
  deadlineMs: deadlineMs.optional(),
});

const textOrEnv = z.union([envRef, z.string().min(1)]);
/** What both HTTP sources say of their address. */
const http = {
  url: z.union([envRef, z.string()]),
  /** `Authorization: Bearer …`. */
  token: secretRef.optional(),
  basic: z.strictObject({ user: textOrEnv, password: secretRef }).optional(),
  /** Sent with each request: `{ 'X-Scope-OrgID': 'team-a' }`. Secrets only by `env()`. */
  headers: z.record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/), textOrEnv).optional(),
  /** Paths of PEM files where the daemon runs. */
  tls: z
    .strictObject({
      ca: textOrEnv.optional(),
      cert: textOrEnv.optional(),
      key: textOrEnv.optional(),
    })
    .optional(),
  deadlineMs: deadlineMs.optional(),
};

const prometheusSignal = z.strictObject({
  source: z.literal('prometheus'),
  stat: z.literal('query'),
  /** A PromQL expression for an instant. */
  query: text(/^(?=[\s\S]*\S)[\s\S]{1,4000}$/, 'a PromQL expression of at most 4,000 characters'),
  ...http,
  unit,
  /** Makes one number of many series. Default: exactly one series. */
  aggregate,
  /** Samples older than this are stale. Default 2 minutes. */
  maxAge: time({ min: 1000 }).optional(),
});

const metric = text(/^[^\s"{}]{1,200}$/, "the name of a metric ('http_requests_total')");
/** Label → the value it must have, or one of several. Default: all series of the metric. */
const labels = z.record(z.string().min(1), z.union([z.string(), z.array(z.string()).min(1)]));

const scrapeSignal = z.discriminatedUnion('stat', [
  z.strictObject({
    source: z.literal('scrape'),
    stat: z.literal('gauge'),
    metric,
    labels: labels.optional(),
    aggregate,
    ...http,
    unit,
  }),
  z.strictObject({
    source: z.literal('scrape'),
    /** Of a counter: what it gained a second, summed over its series. */
    stat: z.literal('rate'),
    metric,
    labels: labels.optional(),
    ...http,
  }),
  z.strictObject({
    source: z.literal('scrape'),
    /** Of counters: what the series with these labels gained ÷ what those of `over` did. */
    stat: z.literal('share'),
    metric,
    labels: labels.optional(),
    over: z.strictObject({ metric: metric.optional(), labels: labels.optional() }),
    ...http,
  }),
  z.strictObject({
    source: z.literal('scrape'),
    /** Of a histogram: its quantile or mean between two scrapes. */
    stat: z.literal('histogram'),
    metric,
    labels: labels.optional(),
    of,
    ...http,
    unit,
  }),
]);

const customSignal = z.strictObject({
  source: z.literal('custom'),
  stat: z.literal('function'),
  /** Set when its file is loaded: the signal whose function it is, and the hash of the text of the file. */
  function: z.string().optional(),
  code: z.string().optional(),
  unit,
  deadlineMs: deadlineMs.optional(),
});

export const signalSchema = z.discriminatedUnion('source', [
  telemetrySignal,
  postgresSignal,
  mysqlSignal,
  prometheusSignal,
  scrapeSignal,
  customSignal,
]);
