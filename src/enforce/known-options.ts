/** Options that do not exist are told, with the word that was meant: a silent one would limit nothing. Stage: enforce. */
import { closest, third } from '../closest.js';
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';

const RATE_AND_CAPACITY = 'rate (tokens per second) and capacity (most tokens held)';
const WINDOW = `windowMs beside an algorithm with a window, or without one ${RATE_AND_CAPACITY}`;

/** Words of other limiters, in lower case without `_` and `-`, and ours. */
const OURS: Readonly<Record<string, string>> = {
  burst: 'capacity (most tokens held)',
  limit: RATE_AND_CAPACITY,
  max: RATE_AND_CAPACITY,
  points: RATE_AND_CAPACITY,
  ratepersecond: 'rate (tokens per second)',
  rps: 'rate (tokens per second)',
  concurrency: 'inFlightMax',
  maxconcurrent: 'inFlightMax',
  window: WINDOW,
  duration: WINDOW,
  interval: WINDOW,
  keyprefix: 'prefix',
  keygenerator:
    "perSubject: { subject: 'user:{userId}', rate, capacity }, and attributes of the middleware",
  key: 'subject',
  store: 'redis or url',
  client: 'redis',
  failopen: "onRedisError: 'open'",
  timeout: 'timeoutMs or deadlineMs',
  errorthresholdpercentage: 'errorRatio (0 … 1)',
  resettimeout: 'openMs',
  registry: 'register',
  skip: 'exempt',
};

/**
 * Throws for a field of `given` that is not in `allowed`. `what` begins the sentence: `createLimiter`, `protect: breaker`.
 * `also`: allowed, but not told.
 */
export function checkKnown(
  what: string,
  given: object,
  allowed: readonly string[],
  also: readonly string[] = [],
): void {
  for (const field of Object.keys(given)) {
    if (allowed.includes(field) || also.includes(field)) continue;
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `${what} does not know ${show(field)}. ${meant(field, allowed)}It takes ${allowed.join(', ')}.`,
    );
  }
}

function meant(field: string, allowed: readonly string[]): string {
  const word = field.toLowerCase().replace(/[_-]/g, '');
  const ours = Object.hasOwn(OURS, word) ? OURS[word] : undefined;
  // Only if one of its names can be given here.
  if (ours !== undefined && allowed.some((name) => new RegExp(`\\b${name}\\b`).test(ours))) {
    return `Say ${ours}. `;
  }
  const near = closest(field, allowed, (each) => third(each.length, 1));
  return near ? `Did you mean ${near.name}? ` : '';
}
