/**
 * Open-loop load: Poisson arrivals from a seed, sent when due whether or not earlier ones were answered. Prints one
 * JSON line a second and ends by itself. Stage: demo.
 */
import { poissonArrivals, type RateStep, seededRandom } from './arrivals.js';
import { emptyHistogram, type Histogram, record } from './histogram.js';
import { createClient, type Outcome } from './load-attempt.js';

/** What a user waits before giving up, and what still counts as good. */
const TIMEOUT_MS = 2000;
const GOOD_WITHIN_MS = 1000;
const GIVE_UP_SECONDS = 8;

/** Events of one second, each in the second it happened in. */
export interface LoadSecond {
  second: number;
  /** Orders that arrived: first attempts. */
  offered: number;
  /** Requests sent: first attempts and retries. */
  attempts: number;
  ok: number;
  /** Ok within 1 s of being sent. */
  good: number;
  refused: number;
  failed: number;
  timedOut: number;
  broken: number;
  /** Requests under way at the end of the second. */
  open: number;
  /** Worst delay between due and sent: the generator's own fault, not the service's. */
  lagMs: number;
  /** Latency of all that was not refused; a timeout counts with the time it was given. */
  latency: Histogram;
}

export interface LoadOptions {
  url: string;
  steps: RateStep[];
  seed: number;
  /** Wall ms at which the first second begins. */
  startAtMs: number;
  retry: boolean;
}

function run({ url, steps, seed, startAtMs, retry }: LoadOptions): void {
  const client = createClient(url, TIMEOUT_MS);
  const random = seededRandom(seed);
  const jitter = seededRandom(seed ^ 0x5bd1e995);
  const arrivals = poissonArrivals(steps, random);
  const startAt = performance.now() + (startAtMs - Date.now());
  const lastSecond = steps.reduce((sum, step) => sum + step.seconds, 0);
  let due = arrivals.next();
  let order = 0;
  let pending = 0;
  let open = 0;
  let second = 0;
  let now = blank();

  function send(id: number, isRetry: boolean) {
    now.attempts += 1;
    open += 1;
    client.attempt(`/checkout/${id}`, (outcome) => {
      open -= 1;
      count(outcome);
      if (!isRetry && retry && outcome.kind !== 'ok') {
        pending += 1;
        setTimeout(() => {
          pending -= 1;
          send(id, true);
        }, pauseBefore(outcome));
      }
    });
  }

  /** As told by Retry-After; else a short backoff with jitter. */
  function pauseBefore({ retryAfterMs }: Outcome): number {
    return retryAfterMs === undefined ? 100 + 200 * jitter() : retryAfterMs * (1 + 0.1 * jitter());
  }

  function count({ kind, ms }: Outcome) {
    now[kind] += 1;
    if (kind === 'ok' && ms <= GOOD_WITHIN_MS) now.good += 1;
    if (kind !== 'refused' && kind !== 'broken') record(now.latency, ms);
  }

  function blank(): LoadSecond {
    return {
      second,
      offered: 0,
      attempts: 0,
      ok: 0,
      good: 0,
      refused: 0,
      failed: 0,
      timedOut: 0,
      broken: 0,
      open: 0,
      lagMs: 0,
      latency: emptyHistogram(),
    };
  }

  /** Prints each second that has ended by `at`, so that what follows counts in its own. */
  function closeSeconds(at: number) {
    while (second + 1 <= at / 1000) {
      process.stdout.write(`${JSON.stringify({ ...now, open })}\n`);
      second += 1;
      now = blank();
    }
  }

  const timer = setInterval(() => {
    const at = performance.now() - startAt;
    while (!due.done && due.value <= at) {
      closeSeconds(due.value);
      now.offered += 1;
      now.lagMs = Math.max(now.lagMs, at - due.value);
      send(order++, false);
      due = arrivals.next();
    }
    closeSeconds(at);
    const quiet = due.done && open === 0 && pending === 0;
    // What is neither answered nor timed out by the later moment never will be.
    if (second >= lastSecond && (quiet || second > lastSecond + GIVE_UP_SECONDS)) finish();
  }, 2);

  function finish() {
    clearInterval(timer);
    client.close();
    process.exit(0);
  }
}

process.on('disconnect', () => process.exit(0));
run(JSON.parse(process.argv[2] ?? '') as LoadOptions);
