/** Unknown fields answered in our words: what other tools call it, or what the author most likely meant. Stage: policy. */
import { closest, third } from '../closest.js';

const RATE = 'rate (tokens per second)';
const CAPACITY = 'capacity (most tokens held)';
const CAP = 'inFlightMax (most admitted requests under way)';
const NO_WINDOW = `A token bucket has no window: say ${RATE} and ${CAPACITY}, or algorithm: 'auto' and window: '1m'`;

/** Words of other limiters and breakers, in lower case without `_` and `-`, and ours. */
const OURS: Record<string, string> = {
  burst: CAPACITY,
  burstsize: CAPACITY,
  burstcapacity: CAPACITY,
  bucketsize: CAPACITY,
  maxtokens: CAPACITY,
  tokens: CAPACITY,
  limit: `${RATE} or ${CAPACITY}`,
  max: `${RATE} or ${CAPACITY}`,
  maxrequests: `${RATE} or ${CAPACITY}`,
  quota: `${RATE} or ${CAPACITY}`,
  rps: RATE,
  qps: RATE,
  refillrate: RATE,
  ratelimit: RATE,
  ratepersecond: RATE,
  requestspersecond: RATE,
  tokenspersecond: RATE,
  points:
    'cost (tokens a request takes: an argument of take(); its largest here is limiter.maxCost)',
  weight:
    'cost (tokens a request takes: an argument of take(); its largest here is limiter.maxCost)',
  cost: 'limiter.maxCost (the largest cost a caller takes)',
  concurrency: CAP,
  concurrencylimit: CAP,
  maxconcurrent: CAP,
  maxconcurrency: CAP,
  maxinflight: CAP,
  inflight: CAP,
  threads: CAP,
  window: NO_WINDOW,
  windowms: NO_WINDOW,
  windowsize: NO_WINDOW,
  interval: NO_WINDOW,
  duration: NO_WINDOW,
  key: "perSubject: { subject: 'user:{userId}', rate, capacity }",
  keygenerator: "perSubject: { subject: 'user:{userId}', rate, capacity }",
  keyprefix: 'The prefix of keys is a setting of daemon and SDK, not of a policy',
  store: 'Which Redis to use is a setting of daemon and SDK, not of a policy',
  redis: 'Which Redis to use is a setting of daemon and SDK, not of a policy',
  failopen: "onRedisError: 'open'",
  passoncstoreerror: "onRedisError: 'open'",
  dryrun: "mode: 'shadow'",
  enabled: "mode: 'off' to admit all",
  slo: 'objective',
  slos: 'objective',
  goals: 'objective',
  metrics: 'signals',
  law: 'control: adaptive(), step() or fixed()',
  algorithm: 'control: adaptive(), step() or fixed()',
  controller: 'control',
  onerror: 'onRedisError',
  circuitbreaker: 'breaker',
  throttle: 'limiter',
  rule: 'limiter',
  fallback: 'whenLost (where the limits go without an autopilot) or onRedisError',
};

/** The same words where they mean something else. */
const OURS_IN: Record<string, Record<string, string>> = {
  objective: {
    threshold: 'below (or above)',
    setpoint: 'below (or above)',
    target: 'below (or above)',
    max: 'below',
    limit: 'below',
    min: 'above',
    window: 'sustain',
    for: 'sustain',
    witness: 'confirm',
    and: 'confirm',
    whenmissing: 'onMissing',
    onstale: 'onMissing',
  },
  breaker: {
    threshold: 'above',
    errorthresholdpercentage: 'above',
    failurethreshold: 'above',
    max: 'above',
    limit: 'above',
    window: 'per',
    windowms: 'per',
    interval: 'per',
    duration: 'openFor',
    timeout: 'openFor',
    resettimeout: 'openFor',
    halfopenafter: 'openFor',
    sleepwindow: 'openFor',
    cooldown: 'openFor',
    volumethreshold: 'minAnswers',
    minimumcalls: 'minAnswers',
    minimumnumberofcalls: 'minAnswers',
    permittednumberofcallsinhalfopenstate: 'successes and probeRate',
    consecutivefailures: 'on: a signal made by telemetry.failuresInARow()',
    consecutiveerrors: 'on: a signal made by telemetry.failuresInARow()',
    slowcallratethreshold: 'on: a signal made by telemetry.slowRatio()',
    slowcalldurationthreshold: 'over, in telemetry.slowRatio({ over })',
    maxopenfor: 'openForMax',
    anyof: 'or',
    levels: 'or',
    signal: 'on',
  },
  bounds: { concurrency: 'inFlight', inflightmax: 'inFlight', burst: 'capacity', limit: 'rate' },
  signals: { quantile: 'of', percentile: 'of', timeout: 'deadlineMs', connectionstring: 'url' },
};

/** What to say for a field that is not allowed in `section` (the first part of its path). */
export function unknownField(name: string, section: string, allowed: readonly string[]): string {
  const word = name.toLowerCase().replace(/[_-]/g, '');
  const ours = own(own(OURS_IN, section) ?? {}, word) ?? own(OURS, word);
  const near = closest(name, allowed, (each) => third(each.length, 1));
  // A slip of the keyboard (`rats`) beats a foreign word; a foreign word beats a far resemblance.
  if (near && near.edits <= 1) return `is not a field. Did you mean ${near.name}?`;
  if (ours && !allowed.includes(word))
    return `is not our word. ${/^[A-Z]/.test(ours) ? ours : `Say ${ours}`}.`;
  if (near) return `is not a field. Did you mean ${near.name}?`;
  if (allowed.length === 0) return 'is not a field.';
  return `is not a field. Allowed: ${allowed.join(', ')}.`;
}

/** `constructor` is a word of everybody's prototype, not of our lists. */
function own<T>(list: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(list, word) ? list[word] : undefined;
}
