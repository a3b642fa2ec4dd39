/** The algorithm that `createLimiter` is given, checked, with its window. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import {
  ALGORITHMS,
  type Algorithm,
  type AlgorithmTerms,
  autoAlgorithm,
  DEFAULT_CELLS,
  hasWindow,
} from '../redis/algorithms.js';
import { checkDuration, show } from './arguments.js';

export interface AlgorithmOptions {
  /**
   * How takes are decided. With a window, limit = rate × windowMs ÷ 1000; `auto`: a sliding log up to 1,000 tokens a
   * window, above it a sliding counter. The adopted policy's choice beats this one. Default `token-bucket`.
   */
  algorithm?: Algorithm | 'auto';
  /** Length of the window, for `auto` and the sliding and fixed ones. */
  windowMs?: number;
  /** Cells of a sliding counter. Default 6. */
  cells?: number;
}

const MAX_WINDOW_MS = 31_622_400_000;
const MAX_CELLS = 1_000;
const MAX_LIMIT = 1e9;

/** undefined: the token bucket. */
export function resolveTerms(
  options: AlgorithmOptions,
  rate: number | null,
): AlgorithmTerms | undefined {
  const { algorithm = 'token-bucket', windowMs, cells } = options;
  if (algorithm !== 'auto' && !ALGORITHMS.includes(algorithm)) {
    throw refused(
      'algorithm',
      algorithm,
      `'auto' or ${ALGORITHMS.map((one) => `'${one}'`).join(', ')}`,
    );
  }
  if (algorithm !== 'auto' && !hasWindow(algorithm)) {
    if (windowMs !== undefined) {
      throw refused(
        'windowMs',
        windowMs,
        `a window only with a sliding or fixed one, not '${algorithm}'`,
      );
    }
    return algorithm === 'token-bucket' ? undefined : { algorithm, windowMs: 0, cells: 0 };
  }
  const window = checkDuration('windowMs', windowMs, 1, MAX_WINDOW_MS);
  if (!Number.isInteger(window)) throw refused('windowMs', windowMs, 'whole milliseconds');
  const limit = rate === null ? null : (rate * window) / 1000;
  if (limit !== null && !(limit >= 1 && limit <= MAX_LIMIT)) {
    throw refused(
      'windowMs',
      windowMs,
      `rate × windowMs ÷ 1000 from 1 to 1e9 tokens; it is ${limit}`,
    );
  }
  if (cells !== undefined && !(Number.isInteger(cells) && cells >= 1 && cells <= MAX_CELLS)) {
    throw refused('cells', cells, `a whole number from 1 to ${MAX_CELLS}`);
  }
  if (algorithm !== 'auto') return terms(algorithm, window, cells);
  if (rate === null)
    throw refused('algorithm', algorithm, "'auto' only with a rate, which chooses");
  return terms(autoAlgorithm(rate, window), window, cells);
}

function terms(algorithm: Algorithm, windowMs: number, cells = DEFAULT_CELLS): AlgorithmTerms {
  return { algorithm, windowMs, cells: algorithm === 'sliding-counter' ? cells : 0 };
}

function refused(field: string, value: unknown, allowed: string): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_OPTION',
    `${field} is ${show(value)}. Use ${allowed}.`,
  );
}
