/** The algorithms that decide a take, by name, with their terms. Stage: enforce, policy. */
export const ALGORITHMS = [
  'token-bucket',
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'leaky-bucket',
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** How takes are decided. With a window, limit = rate × window; `cells` are the sliding counter's. */
export interface AlgorithmTerms {
  algorithm: Algorithm;
  /** 0 where there is no window. */
  windowMs: number;
  cells: number;
}

export const DEFAULT_CELLS = 6;
/** `auto` keeps a log up to this many tokens a window (16 bytes each), and counts in cells above. */
export const AUTO_LOG_MAX = 1_000;

/** What `auto` stands for at a rate. */
export function autoAlgorithm(rate: number, windowMs: number): Algorithm {
  return (rate * windowMs) / 1000 <= AUTO_LOG_MAX ? 'sliding-log' : 'sliding-counter';
}

/** Does it count within a window? */
export function hasWindow(algorithm: Algorithm | 'auto'): boolean {
  return algorithm !== 'token-bucket' && algorithm !== 'leaky-bucket';
}
