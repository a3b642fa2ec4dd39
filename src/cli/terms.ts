/** What the terms of a decision mean, in a few words each, for `flyball explain`. Stage: cli. */

const MEANINGS: Record<string, string> = {
  z: 'ln(worst signal ÷ its setpoint): 0 at the setpoint, 0.69 at twice it',
  over: 'ln(worst signal ÷ aim); the aim lies below the setpoint: above 0 too slow, below 0 room',
  cap: 'the cap wanted, before rounding and guards',
  observed: 'requests seen in flight',
  slope:
    'how throughput follows the cap: 1 every slot earns, 0 more only waits, below 0 more costs',
  effect: 'how much of a cut is made: 0 none, 1 all',
  futile: '1: cuts have not helped; they stop',
  verified: 'highest good answers a second of late',
  drained: '1: the answers are of requests admitted after the last cut',
  capBinds: '1: the cap was full, or denied',
  rateBinds: '1: the rate denied',
  binds: '1: the rate denied, or nearly all of it is used',
  excess: 'requests under way beyond what the throughput needs',
  usualMs: 'usual mean response time, ms',
  measured: 'good answers a second, smoothed',
  good: 'last good rate',
  t: 'seconds on the way back up',
  meanMs: 'mean response time, ms (−1: unknown)',
  dbWaits: 'database waits (−1: unknown)',
  slowMs: 'how long the mean has been too high, ms',
  waitsMs: 'how long database waits have been too high, ms',
  healthyMs: 'how long the error rate has been low, ms',
  minuteMs: 'how much of the running minute has been seen, ms',
  minuteAnswers: 'answers in the running minute',
  minuteFailed: 'failures in the running minute',
  level: 'openings that still count: each doubles the open time',
  probesOk: 'probes answered well',
  probesFailed: 'probes that failed',
};

/** The meaning of a term; empty for one of another version. */
export function termMeaning(name: string): string {
  return Object.hasOwn(MEANINGS, name) ? MEANINGS[name]! : '';
}
