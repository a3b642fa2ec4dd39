/** What a signal is measured in, which decides how its objective and breaker levels are written. Stage: policy. */
import type { Signal } from './schema.js';
import type { Unit } from './signals-schema.js';

export type SignalKind = 'duration' | 'ratio' | 'count' | 'perSecond';

/** Of a stat that says it itself. */
const KINDS = {
  latency: 'duration',
  dbWait: 'duration',
  eventLoopDelay: 'duration',
  oldest: 'duration',
  longestTransactionMs: 'duration',
  replicaLagMs: 'duration',
  lockTimeMs: 'duration',
  errorRatio: 'ratio',
  timeoutRatio: 'ratio',
  slowRatio: 'ratio',
  connectionsRatio: 'ratio',
  deniedRatio: 'ratio',
  cpu: 'ratio',
  memory: 'ratio',
  share: 'ratio',
  errors: 'count',
  failuresInARow: 'count',
  poolWaiting: 'count',
  inFlight: 'count',
  waiting: 'count',
  threadsRunning: 'count',
  goodput: 'perSecond',
  offered: 'perSecond',
  admitted: 'perSecond',
  lockWaits: 'perSecond',
  rate: 'perSecond',
} as const satisfies Partial<Record<Signal['stat'], SignalKind>>;

/** Of a number that may be anything, by the unit that the policy gives it. */
const UNIT_KINDS = {
  count: 'count',
  ratio: 'ratio',
  perSecond: 'perSecond',
  seconds: 'duration',
  milliseconds: 'duration',
} as const satisfies Record<Unit, SignalKind>;

/** A signal as an author writes it, as far as its kind needs it. */
interface Kinded {
  stat: Signal['stat'];
  unit?: Unit | undefined;
}

/** The kind of each signal, for types. */
export type KindOf<S extends Kinded> = S['stat'] extends keyof typeof KINDS
  ? (typeof KINDS)[S['stat']]
  : S extends { unit: infer U extends Unit }
    ? (typeof UNIT_KINDS)[U]
    : 'count';

export function signalKind(signal: Kinded): SignalKind {
  const own = (KINDS as Partial<Record<string, SignalKind>>)[signal.stat];
  return own ?? UNIT_KINDS[signal.unit ?? 'count'];
}

/** How a level of that kind is written. */
export const KIND_WORDS: Record<SignalKind, string> = {
  duration: "a time: write '250ms' or a number of milliseconds",
  ratio: "a ratio: write '1%' or 0 … 1",
  count: 'a count: write a plain number',
  perSecond: 'a number per second: write a plain number',
};

/** Failures are the breaker's business: no limit is cut for them. */
const FAILURES = [
  'errorRatio',
  'timeoutRatio',
  'failuresInARow',
  'errors',
] satisfies Signal['stat'][];

export function countsFailures({ stat }: Pick<Signal, 'stat'>): boolean {
  return (FAILURES as readonly string[]).includes(stat);
}

/** How fast and how many come is the law's business, and what is denied its own doing: no breaker opens on it. */
const FOR_LAWS = [
  ...(['latency', 'goodput', 'inFlight'] as const),
  ...(['offered', 'admitted', 'deniedRatio'] as const),
] satisfies Signal['stat'][];

/** Stats that a breaker may watch. */
export type TrippingStat = Exclude<Signal['stat'], (typeof FOR_LAWS)[number]>;

export function isTripping({ stat }: Pick<Signal, 'stat'>): boolean {
  return !(FOR_LAWS as readonly string[]).includes(stat);
}
