/** Checks between the algorithm, its window and the rates. Stage: policy. */
import type { Draft, Report } from './draft.js';

const MAX_LIMIT = 1e9;

export function checkWindow(draft: Draft, report: Report): void {
  const { limiter = {}, bounds = {} } = draft;
  const { algorithm, count, window, maxCost = 1 } = limiter;
  if (algorithm === 'leaky-bucket' && count !== undefined && count !== 'all') {
    report(
      'limiter.count',
      `is '${count}', but a leaky bucket gives nothing back: those behind have been told their times. Say 'all', or take another algorithm.`,
    );
  }
  const windowed =
    algorithm !== undefined && algorithm !== 'token-bucket' && algorithm !== 'leaky-bucket';
  if (!windowed) {
    for (const name of ['window', 'cells'] as const) {
      if (limiter[name] === undefined || ('algorithm' in limiter && algorithm === undefined))
        continue;
      report(
        `limiter.${name}`,
        `is for algorithms with a window; a ${algorithm ?? 'token-bucket'} has no window: say rate and capacity alone, or give algorithm: 'auto'.`,
      );
    }
    return;
  }
  if (!('window' in limiter)) {
    report(
      'limiter.window',
      `is missing: algorithm '${algorithm}' counts in a window. Give window: '1m'.`,
    );
  }
  if (window === undefined) return;
  const limits = [
    ['limiter.rate', bounds.rate?.min ?? limiter.rate, bounds.rate?.max ?? limiter.rate],
    ['limiter.perSubject.rate', limiter.perSubject?.rate, limiter.perSubject?.rate],
  ] as const;
  for (const [field, lowest, highest] of limits) {
    if (lowest !== undefined && (lowest * window) / 1000 < maxCost) {
      report(
        'limiter.window',
        `is ${window} ms: at ${field} ${lowest} that is ${(lowest * window) / 1000} tokens a window, below limiter.maxCost ${maxCost}. Lengthen it.`,
      );
    }
    if (highest !== undefined && (highest * window) / 1000 > MAX_LIMIT) {
      report(
        'limiter.window',
        `is ${window} ms: at ${field} ${highest} that is above 1e9 tokens a window. Shorten it.`,
      );
    }
  }
}
