/** What a signal is measured in, which decides how its objective and breaker levels are written. Stage: policy. */
import type { Signal } from './schema.js';

export type SignalKind = 'duration' | 'ratio' | 'count' | 'perSecond';

type Stat = Signal['stat'];

const KINDS = {
  latency: 'duration',
  dbWait: 'duration',
  longestTransactionMs: 'duration',
  errorRatio: 'ratio',
  connectionsRatio: 'ratio',
  errors: 'count',
  poolWaiting: 'count',
  inFlight: 'count',
  waiting: 'count',
  goodput: 'perSecond',
} as const satisfies Record<Stat, SignalKind>;

/** The kind of each stat, for types. */
export type KindOf<S extends Stat> = (typeof KINDS)[S];

export function signalKind(signal: Signal): SignalKind {
  return KINDS[signal.stat];
}

/** How a level of that kind is written. */
export const KIND_WORDS: Record<SignalKind, string> = {
  duration: "a time: write '250ms' or a number of milliseconds",
  ratio: "a ratio: write '1%' or 0 … 1",
  count: 'a count: write a plain number',
  perSecond: 'a number per second: write a plain number',
};
