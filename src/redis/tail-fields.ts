/** Who asks for decision samples (`{L}:tail`), and the samples (`{L}:samples`), as text. Stage: enforce → cli. */
import type { LimiterState, Mode } from './params.js';

/** An asker that does not ask again within this time is gone: `flyball tail` renews each second. */
export const ASK_TTL_MS = 5_000;
/** Samples kept, roughly; the stream goes away this long after the last one. */
export const SAMPLES_KEPT = 1_000;
export const SAMPLES_TTL_MS = 60_000;
/** The one field of a stream entry. */
export const SAMPLE_FIELD = 's';

/** One value of the hash `{L}:tail`, by asker. */
export interface TailAsk {
  /** Share of the decisions wanted, above 0, at most 1. */
  ratio: number;
  /** ms of Redis time. */
  untilMs: number;
  /** Subjects are sent hashed with this; empty: as they are. */
  salt: string;
}

/** A decision as `flyball tail` shows it: what was asked, what was answered and why. */
export interface DecisionSample {
  /** ms of Redis time, as the process knows it. */
  atMs: number;
  process: string;
  /** This process's how-manyth chosen decision since it was first asked: a gap was dropped. */
  n: number;
  /** Drawn evenly from 0 … 1: below an asker's ratio the sample is its own. */
  u: number;
  subject: string | null;
  /** The subject is a hash. */
  hashed: boolean;
  cost: number;
  priority: string;
  allowed: boolean;
  /** Shadow mode: what enforcement would have answered. */
  wouldAllow: boolean;
  reason: string;
  limit: string | null;
  remaining: number;
  retryAfterMs: number | null;
  delayMs: number;
  source: string;
  epoch: number;
  revision: number;
  state: LimiterState;
  mode: Mode;
  tookMs: number;
}

/** null: nothing that an asker wrote, or over by `nowMs`. */
export function readAsk(text: string, nowMs: number): TailAsk | null {
  const { ratio, untilMs, salt } = (readObject(text) ?? {}) as Partial<TailAsk>;
  if (typeof ratio !== 'number' || !(ratio > 0 && ratio <= 1)) return null;
  if (typeof untilMs !== 'number' || !(untilMs > nowMs)) return null;
  return { ratio, untilMs, salt: typeof salt === 'string' ? salt : '' };
}

/** null: no sample of ours. */
export function readSample(text: string): DecisionSample | null {
  const sample = readObject(text) as DecisionSample | null;
  const whole =
    typeof sample?.atMs === 'number' &&
    typeof sample.process === 'string' &&
    typeof sample.n === 'number' &&
    typeof sample.u === 'number' &&
    typeof sample.allowed === 'boolean' &&
    typeof sample.reason === 'string';
  return whole ? sample : null;
}

function readObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
